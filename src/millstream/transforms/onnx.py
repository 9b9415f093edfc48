"""Scores rows with a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import BeforeValidator, Field, WithJsonSchema

from millstream.errors import Diagnostic, RunError, SetupError, nearest
from millstream.jvm.pickling import by_value
from millstream.plan import types
from millstream.plan.changelog import op_of
from millstream.plan.components import REJECT, NodeContext, Origins, Problem, Transform, TransformRun, unchanged
from millstream.sql.expressions import only_schema
from millstream.worker.batches import REJECT_TYPE
from millstream.worker.models import Model, ModelError, Tensor, load_model
from millstream.worker.scoring import ModelRunner, Score

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

_HELP = "`pip install 'millstream[onnx]'`, here and on the workers"
_PLACE = re.compile(r"(.*)\[(\d+)\]")


def _as_maps(value: Any) -> Any:
    """An input may have one column."""
    if not isinstance(value, Mapping):
        return value
    return {name: [columns] if isinstance(columns, str) else columns for name, columns in value.items()}


def _as_map(value: Any) -> Any:
    """`label` and `[label, score]` are outputs under their own names."""
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return {name: name for name in names} if isinstance(names, list | tuple) else names


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT, "minItems": 1}
Inputs = Annotated[
    dict[str, Annotated[tuple[str, ...], Field(min_length=1)]],
    BeforeValidator(_as_maps),
    WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [_TEXT, _TEXTS]}}),
]
Outputs = Annotated[
    dict[str, str],
    BeforeValidator(_as_map),
    WithJsonSchema({"anyOf": [_TEXT, _TEXTS, {"type": "object", "additionalProperties": _TEXT, "minProperties": 1}]}),
]


class Onnx(Transform):
    """Adds what a model says of each row. The model is an ONNX file, to which scikit-learn, LightGBM, XGBoost, PyTorch and TensorFlow can
    export. It runs in Spark's Python workers, on whole batches; each worker loads it once.

    An input takes a column of numbers (or texts), several columns side by side, or a list column with a vector per row. A row with a null
    in one of them is a reject, and so is one whose result is not a number.
    """

    type: ClassVar[str] = "onnx"
    summary: ClassVar[str] = "Score rows with an ONNX model."
    extra: ClassVar[str] = "onnx"
    example: ClassVar[str] = """
        scored:
          type: onnx
          from: orders
          model: fraud.onnx
          inputs: {features: [amount, hour, new_customer]}
          outputs: [risk]
          on_error: drop
    """
    expensive: ClassVar[bool] = True
    adjustable: ClassVar[frozenset[str]] = frozenset({"batch_size", "threads"})

    model: str = Field(min_length=1)
    """The model's file, relative to the pipeline."""
    inputs: Inputs = Field(default_factory=dict)
    """Input of the model → column, or a list of columns of numbers. Default: columns with the names of the inputs."""
    outputs: Outputs = Field(min_length=1)
    """New column → output of the model; `NAME[1]` is the second of its values. `[label, score]` keeps the names."""
    batch_size: int | None = Field(default=None, ge=1)
    """The most rows per call. Default: as many as Spark sends at once."""
    threads: int = Field(default=1, ge=1, le=64)
    """Threads per call. Each of Spark's workers makes calls of its own, so that one uses all cores."""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return pa.schema([*schema, *(pa.field(name, types.UNKNOWN) for name in self.outputs)]) if schema is not None else None

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema = only_schema(inputs)
        found = list(self._taken(schema)) if schema is not None else []
        if find_spec("onnxruntime") is None and (directory / self.model).is_file():
            return [*found, Problem("MS045", "the model is not looked at without the package `onnxruntime`", "model", _HELP, "warning")]
        try:
            model = self.load(self.read(directory))
        except (RunError, SetupError) as error:
            return [*found, *(Problem(each.code, each.message, "model", each.help) for each in error.diagnostics)]
        return [*found, *self.mismatches(model, schema)]

    def mismatches(self, model: Model, schema: pa.Schema | None) -> Iterator[Problem]:
        """Where the options and the rows do not fit the model."""
        for tensor in model.inputs.values():
            yield from self._input_problems(tensor, schema)
        for name in self.inputs:
            if name not in model.inputs:
                help_ = nearest(name, list(model.inputs))
                yield Problem("MS211", f"the model has no input `{name}`", f"inputs.{name}", help_)
        for score in self.scores():
            yield from _output_problems(score, model)

    def columns_of(self, tensor: Tensor) -> tuple[str, ...]:
        """The columns that an input gets."""
        return self.inputs.get(tensor.name, (tensor.name,))

    def scores(self) -> Iterator[Score]:
        for column, output in self.outputs.items():
            place = _PLACE.fullmatch(output)
            yield Score(column, place[1] if place else output, int(place[2]) if place else None)

    def load(self, content: bytes) -> Model:
        """The model, loaded here."""
        if find_spec("onnxruntime") is None:
            raise SetupError(Diagnostic("MS045", "a model needs the package `onnxruntime`", help=_HELP))
        try:
            return load_model(content, self.threads)
        except ModelError as error:
            raise RunError(Diagnostic("MS210", f"`{self.model}` cannot be loaded: {error}")) from error

    def read(self, directory: Path) -> bytes:
        path = directory / self.model
        try:
            return path.read_bytes()
        except OSError as error:
            beside = [each.name for each in path.parent.glob("*.onnx")] if path.parent.is_dir() else []
            help_ = nearest(path.name, beside) or "the path is relative to the pipeline"
            raise RunError(Diagnostic("MS210", f"`{self.model}` cannot be read: {error.strerror}", help=help_)) from error

    def open(self, context: NodeContext) -> OnnxRun:
        return OnnxRun(self, context)

    def _taken(self, schema: pa.Schema) -> Iterator[Problem]:
        for name in self.outputs:
            if name.lower() in (known.lower() for known in schema.names):
                help_ = f"`outputs: {{model_{name}: {self.outputs[name]}}}` gives it another name"
                yield Problem("MS211", f"the rows already have a column `{name}`", "outputs", help_)

    def _input_problems(self, tensor: Tensor, schema: pa.Schema | None) -> Iterator[Problem]:
        field = f"inputs.{tensor.name}" if tensor.name in self.inputs else "model"
        if tensor.type is None or not tensor.shape:
            help_ = "an input needs numbers or texts, and an axis for rows"
            yield Problem("MS210", f"rows cannot be the model's input {tensor}", "model", help_)
            return
        if tensor.fixed_rows is not None:
            help_ = "export it with a dynamic first axis"
            yield Problem("MS210", f"the model takes {tensor.fixed_rows} rows at a time: {tensor}", "model", help_)
        if schema is None:
            return
        columns = self.columns_of(tensor)
        missing = [column for column in columns if column not in schema.names]
        for column in missing:
            if tensor.name in self.inputs:
                yield Problem("MS024", f"unknown column `{column}`", f"{field}.{column}", nearest(column, schema.names))
            else:
                help_ = f"`inputs: {{{tensor.name}: COLUMN}}` says which column it gets, or which columns"
                yield Problem("MS211", f"no column for the model's input {tensor}", field, help_)
        if not missing and (said := _mismatch(tensor, [schema.field(column) for column in columns])):
            yield Problem("MS211", said, field, f"the input is {tensor}")


class OnnxRun(TransformRun):
    """Reads the model once, and sends it to the workers once."""

    def __init__(self, onnx: Onnx, context: NodeContext) -> None:
        super().__init__(onnx, context)
        self.onnx = onnx
        self._sent: Broadcast[bytes] | None = None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
        from pyspark.sql.types import StructType

        (frame,) = frames.values()
        model, content, digest = self._model
        self._require_fit(model, to_arrow_schema(frame.schema))
        onnx, scores = self.onnx, tuple(self.onnx.scores())
        added = pa.schema([pa.field(score.column, _column_type(score, model)) for score in scores])
        if self._sent is None:
            self._sent = frame.sparkSession.sparkContext.broadcast(content)
        runner = ModelRunner(
            context.name,
            digest,
            self._sent,
            tuple((tensor.name, onnx.columns_of(tensor)) for tensor in model.inputs.values()),
            scores,
            added,
            onnx.batch_size,
            onnx.threads,
            context.isolate,
            op_of(frame.columns),
            context.hidden,
        )
        columns = added.append(pa.field(REJECT, REJECT_TYPE)) if context.isolate else added
        produced = StructType([*frame.schema.fields, *from_arrow_schema(columns, prefer_timestamp_ntz=True).fields])
        with by_value():
            return frame.mapInArrow(runner.run, produced)

    @cached_property
    def _model(self) -> tuple[Model, bytes, str]:
        content = self.onnx.read(self.context.directory)
        return self.onnx.load(content), content, hashlib.sha256(content).hexdigest()

    def _require_fit(self, model: Model, schema: pa.Schema) -> None:
        """A check knows the columns only where it knows their types."""
        found = [problem for problem in self.onnx.mismatches(model, schema) if problem.level == "error"]
        if found:
            raise RunError([Diagnostic(each.code, f"`{self.context.name}`: {each.message}", help=each.help) for each in found])

    def close(self) -> None:
        if self._sent is not None:
            self._sent.unpersist()


def _column_type(score: Score, model: Model) -> pa.DataType:
    tensor = model.outputs[score.output]
    kind = tensor.type if score.place is not None else tensor.column_type
    assert kind is not None, "outputs have been checked"
    return kind


def _mismatch(tensor: Tensor, fields: list[pa.Field]) -> str:
    """Why columns cannot be an input; empty if they can, as far as their types are known."""
    for field in fields:
        kind = field.type.value_type if pa.types.is_list(field.type) or pa.types.is_large_list(field.type) else field.type
        if field.type.equals(types.UNKNOWN) or _fits(kind, tensor.type):
            continue
        return f"`{field.name}` is {types.name_of(field.type)}, and the model takes {tensor.type}"
    vectors = [field.name for field in fields if pa.types.is_list(field.type) or pa.types.is_large_list(field.type)]
    if len(fields) > 1 and vectors:
        return f"`{vectors[0]}` is a list: it is an input by itself"
    known = not any(field.type.equals(types.UNKNOWN) for field in fields)
    if known and not vectors and tensor.width not in {None, len(fields)}:
        return f"{len(fields)} {'column' if len(fields) == 1 else 'columns'} for an input with {tensor.width} values per row"
    if known and vectors and len(tensor.shape) == 1:
        return f"`{vectors[0]}` is a list, and the model takes one value per row"
    if known and not vectors and len(tensor.shape) > 2:
        return f"an input with {len(tensor.shape)} axes takes a list column"
    return ""


def _fits(kind: pa.DataType, wanted: pa.DataType | None) -> bool:
    if wanted is None or pa.types.is_string(wanted):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    whole = bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))
    if pa.types.is_floating(wanted):
        return whole or bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    return bool(pa.types.is_boolean(kind)) if pa.types.is_boolean(wanted) else whole


def _output_problems(score: Score, model: Model) -> Iterator[Problem]:
    field, tensor = f"outputs.{score.column}", model.outputs.get(score.output)
    if tensor is None:
        help_ = nearest(score.output, list(model.outputs))
        yield Problem("MS211", f"the model has no output `{score.output}`", field, help_)
    elif tensor.type is None:
        zipped = "; with scikit-learn, export with `zipmap=False`" if tensor.kind.startswith("seq(map") else ""
        yield Problem("MS211", f"the output {tensor} is no column{zipped}", field, _list(model.outputs))
    elif tensor.fixed_rows is not None:
        yield Problem("MS210", f"the output {tensor} does not have a value for each row", field, "export it with a dynamic first axis")
    elif score.place is not None and tensor.width is not None and score.place >= tensor.width:
        count = "one value" if tensor.width == 1 else f"{tensor.width} values"
        yield Problem("MS211", f"the output {tensor} has {count} per row, counted from 0", field)


def _list(tensors: Mapping[str, Tensor]) -> str:
    return f"it has {', '.join(str(tensor) for tensor in tensors.values())}"
