"""Runs a function in TypeScript or JavaScript on rows, in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.plan import types
from millstream.plan.changelog import kept_columns, op_of
from millstream.plan.components import REJECT, NodeContext, Problem, Transform
from millstream.plan.options import Duration, SchemaMap, Size
from millstream.plan.tracing import TRACED
from millstream.sql.expressions import only_schema
from millstream.worker.batches import REJECT_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.scripts.program import Program, ScriptFault
    from millstream.worker.scripts.runner import ScriptRunner

_PACKAGES = {"quickjs": ("quickjs_rs", "script"), "deno": ("deno", "deno")}


class Script(Transform):
    """Calls a function in TypeScript or JavaScript with each row, in a sandbox inside Spark's workers. An object becomes the row, null
    leaves the row out, an array becomes several rows, and an exception is handled by `on_error`.

    The script has no network, no files, no clock and no random numbers; time, memory and depth of calls are limited, and a row that
    meets a limit alone is rejected by `on_error` as well. Types are stripped, not checked: `millstream check --types` asks TypeScript.
    docs/scripts.md has the table of types.

    On a changelog `_op` and `_seq` stay with their rows. Null for an update or a delete becomes a delete.
    """

    type: ClassVar[str] = "script"
    shaped_by: ClassVar[frozenset[str]] = frozenset({"schema", "columns"})
    summary: ClassVar[str] = "Call a function in TypeScript or JavaScript with each row."
    extra: ClassVar[str] = "script"
    example: ClassVar[str] = """
        priced:
          type: script
          from: orders
          language: typescript
          script: |
            function invoke(row: Row): Result | null {
              return row.amount && row.amount > 0 ? {...row, gross: row.amount * 1.19} : null;
            }
          schema: {id: int64, amount: float64, gross: float64}
    """
    adjustable: ClassVar[frozenset[str]] = frozenset({"engine", "batch_size", "timeout", "memory"})
    expensive: ClassVar[bool] = True
    limited: ClassVar[bool] = True
    text_files: ClassVar[Mapping[str, str]] = {"file": "script"}

    script: Annotated[str, Field(min_length=1)]
    """The text: one function, or several of which one is called `invoke`."""
    language: Literal["typescript", "javascript", "ts", "js"] = "typescript"
    """`typescript` (`ts`) or `javascript` (`js`)."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type of the result. Default: the columns of the input."""
    mode: Literal["row", "batch"] = "row"
    """`row`: the function gets one row. `batch`: it gets an array of rows, and returns one; the node counts as non-deterministic."""
    engine: Literal["quickjs", "deno"] = "quickjs"
    """`quickjs` runs inside the worker. `deno` is a process beside it, several times as fast, and needs `millstream[deno]`."""
    batch_size: int | None = Field(default=None, ge=1)
    """The most rows per call of the engine, and in an array in the mode `batch`. Default: 10000."""
    timeout: Duration = Duration("10s")
    """How long a call of the engine may take."""
    memory: Size = Size("256MB")
    """How much memory the script may use."""
    allow: frozenset[Literal["clock"]] = frozenset()
    """`[clock]`: the script can read the time, and counts as non-deterministic."""

    def extras(self) -> tuple[str, ...]:
        return (_PACKAGES[self.engine][1],)

    @property
    def deterministic(self) -> bool:
        from millstream.scripts.program import Program

        if self.allow or self.mode == "batch":
            return False
        if self._missing_engine():
            return True
        program = self._program()
        return not (isinstance(program, Program) and program.state)

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        given = only_schema(inputs)
        if given is None:
            return types.schema(self.columns) if self.columns else None
        kept = self._kept(given)
        return pa.schema([*self._own(given, kept), *(given.field(name) for name in kept)])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        from millstream.scripts.program import ScriptFault

        if missing := self._missing_engine():
            return [missing]
        program = self._program()
        found = [_problem(program)] if isinstance(program, ScriptFault) else []
        return [*found, *self._type_problems(only_schema(inputs))]

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        ((_, frame),) = frames.items()
        given = to_arrow_schema(frame.schema)
        kept = self._kept(given)
        own = to_arrow_schema(from_arrow_schema(self._own(given, kept), prefer_timestamp_ntz=True))
        runner = self.runner(given, own, context)
        schema = pa.schema([*own, *(given.field(name).with_nullable(True) for name in kept)])
        columns = schema.append(pa.field(REJECT, REJECT_TYPE)) if context.isolate else schema
        with by_value():
            return frame.mapInArrow(runner.run, from_arrow_schema(columns, prefer_timestamp_ntz=True))

    def runner(self, given: pa.Schema, own: pa.Schema, context: NodeContext) -> ScriptRunner:
        """What travels to the workers; a RunError when the script cannot run."""
        from millstream.scripts.engine_files import deno_main, prelude
        from millstream.scripts.program import ScriptFault
        from millstream.worker.scripts.engines import Limits
        from millstream.worker.scripts.pool import EngineSpec
        from millstream.worker.scripts.runner import ScriptRunner

        problems = self.problems({"input": given}, context.directory)
        program = self._program() if not problems else None
        if program is None or isinstance(program, ScriptFault):
            first = problems[0]
            raise RunError(Diagnostic(first.code, first.message, help=first.help))
        kept, op = self._kept(given), op_of(given.names)
        limits = Limits(self.timeout.seconds, self.memory.bytes)
        options = json.dumps(self._engine_options(program, given, own, context, kept))
        main = deno_main() if self.engine == "deno" else ""
        spec = EngineSpec(self.engine, prelude(), main, options, limits)
        return ScriptRunner(
            spec, context.name, own, context.isolate, self.mode == "batch", kept, op, self.batch_size, program.lines, context.hidden
        )

    def made(self, given: pa.Schema) -> pa.Schema:
        """The columns that the function may return, for an input."""
        return self._own(given, self._kept(given))

    @property
    def typed(self) -> bool:
        """Whether it is TypeScript."""
        return self.language in {"typescript", "ts"}

    def _engine_options(
        self, program: Program, given: pa.Schema, own: pa.Schema, context: NodeContext, kept: tuple[str, ...]
    ) -> dict[str, object]:
        from millstream.worker.scripts.values import describe_schema

        seen = pa.schema([field for field in given if field.name != TRACED])
        op = op_of(given.names)
        return {
            "source": program.source,
            "input": describe_schema(seen),
            "output": describe_schema(own),
            "mode": self.mode,
            "kept": [name for name in kept if name != TRACED],
            "op": op if op in kept else "",
            "key": list(context.primary_key),
            "clock": "clock" in self.allow,
        }

    def _program(self) -> Program | ScriptFault:
        from millstream.scripts.program import compile_script

        return compile_script(self.script, "typescript" if self.typed else "javascript")

    def _kept(self, given: pa.Schema) -> tuple[str, ...]:
        declared = self.columns or {}
        return tuple(name for name in kept_columns(given.names) if name not in declared)

    def _own(self, given: pa.Schema, kept: tuple[str, ...]) -> pa.Schema:
        """The columns that the script makes."""
        if self.columns:
            return types.schema(self.columns)
        return pa.schema([field.with_nullable(True) for field in given if field.name not in kept])

    def _missing_engine(self) -> Problem | None:
        for module, extra in {_PACKAGES["quickjs"], _PACKAGES[self.engine]}:
            if find_spec(module) is None:
                message = f"scripts need the package `{module.replace('_', '-')}`, which is not installed here"
                return Problem("MS196", message, "engine", f"pip install 'millstream[{extra}]', here and on Spark's workers")
        return None

    def _type_problems(self, given: pa.Schema | None) -> list[Problem]:
        from millstream.worker.scripts.values import UnfitTypeError, describe_type

        found = []
        declared = types.schema(self.columns) if self.columns else pa.schema([])
        for field, option in [*((each, "schema") for each in declared), *((each, "") for each in given or ())]:
            try:
                describe_type(field.type)
            except UnfitTypeError as error:
                found.append(Problem("MS197", f"the column `{field.name}`: {error}", option, "cast it with a `sql` or `select` node above"))
        if self.mode == "batch" and given is not None and op_of(given.names) in self._kept(given) and op_of(given.names):
            message = "a function of batches cannot say which row of a changelog became which"
            found.append(Problem("MS199", message, "mode", "use `mode: row`, or return the op: declare it in `schema`"))
        return found


def _problem(fault: ScriptFault) -> Problem:
    return Problem(fault.code, fault.message, "script", fault.help, "error", fault.line, fault.column, fault.width)
