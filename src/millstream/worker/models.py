"""Models in the Open Neural Network Exchange format: what they take and return, and sessions that last as long as a process.

This package is pickled to the workers with every task, so sessions are kept outside of it: a worker loads a model once for all epochs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

_HOME = "_millstream_models"
_MOST = 4
"""Models that a process keeps."""
_TYPES: dict[str, pa.DataType] = {
    "tensor(float)": pa.float32(),
    "tensor(double)": pa.float64(),
    "tensor(int8)": pa.int8(),
    "tensor(int16)": pa.int16(),
    "tensor(int32)": pa.int32(),
    "tensor(int64)": pa.int64(),
    "tensor(bool)": pa.bool_(),
    "tensor(string)": pa.string(),
}


class ModelError(ValueError):
    """A model that cannot be used, or a row that it cannot score."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output of a model."""

    name: str
    kind: str
    """The runtime's name of its type, as in `tensor(float)`."""
    shape: tuple[int | None, ...]
    """The length of each axis; None where it is open."""

    @property
    def type(self) -> pa.DataType | None:
        """The type of its values; None if rows cannot have it."""
        return _TYPES.get(self.kind)

    @property
    def fixed_rows(self) -> int | None:
        """How many rows a call has, if the model fixes that."""
        return self.shape[0] if self.shape else None

    @property
    def width(self) -> int | None:
        """How many values it has per row; None if that is open."""
        inner = self.shape[1:]
        return None if None in inner else math.prod(length for length in inner if length is not None)

    @property
    def vector(self) -> bool:
        """Whether a row has several values of it, or may have."""
        return self.width != 1

    @property
    def column_type(self) -> pa.DataType | None:
        return pa.list_(self.type) if self.type is not None and self.vector else self.type

    def __str__(self) -> str:
        axes = ", ".join("rows" if not place else "?" if length is None else str(length) for place, length in enumerate(self.shape))
        return f"`{self.name}` ({self.kind.removeprefix('tensor(').removesuffix(')')}[{axes}])"


@dataclass(frozen=True)
class Model:
    """A loaded model."""

    session: Any
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


def load_model(content: bytes, threads: int) -> Model:
    """Load a model from the bytes of its file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what it has to say is in the exception
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions have no class in common
        raise ModelError(_sentence(error)) from error
    return Model(session, _tensors(session.get_inputs()), _tensors(session.get_outputs()))


def kept_model(digest: str, threads: int, read: Callable[[], bytes]) -> Model:
    """The model of this process with a digest; `read` is called where it is not loaded yet. The last few models are kept."""
    home = sys.modules.setdefault(_HOME, ModuleType(_HOME))
    models: dict[tuple[str, int], Model] = vars(home).setdefault("models", {})
    model = models.pop((digest, threads), None) or load_model(read(), threads)
    while len(models) >= _MOST:
        del models[next(iter(models))]
    models[digest, threads] = model
    return model


def _tensors(nodes: Any) -> dict[str, Tensor]:
    return {node.name: Tensor(node.name, node.type, tuple(_length(axis) for axis in node.shape or ())) for node in nodes}


def _length(axis: Any) -> int | None:
    return axis if isinstance(axis, int) and axis >= 0 else None


def _sentence(error: Exception) -> str:
    """The runtime's reason without its numbers and source lines."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    reason = text.rpartition(" : ")[2] or text
    if "external data" in text.lower() or "external initializer" in text.lower():
        return "its weights are in other files: save it as one file"
    return reason[:300]
