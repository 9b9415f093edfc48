"""Joins of streams in time, and of a stream with a table.

Spark's own operator joins two streams: rows are kept until the time bound shows that no match can come. One aggregate over several streams
joins them in a window. A table is read as a whole, again every `refresh`, and needs no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from millstream.plan.changelog import OP, UPDATE, table_of
from millstream.plan.components import ONCE, Expiring, NamesInputs, NodeContext, Problem, TransformRun, Windowed
from millstream.plan.expressions import quote_column
from millstream.plan.options import Duration, Expression
from millstream.plan.windows import Window, closes
from millstream.transforms.join import interval, table, window
from millstream.transforms.join.matching import Matching, parse_condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Kind = Literal["inner", "left", "right", "full"]


class Within(BaseModel):
    """How far the right side's time may be from the left's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: Duration = Duration("0s")
    """How much earlier than the left row."""
    after: Duration = Duration("0s")
    """How much later than the left row."""


class Join(NamesInputs, Windowed, Expiring):
    """Joins rows of two streams that match and are close in time (`left`, `right`, `within`); rows of several streams with the same key
    and window (`from`, `window`); or rows of a stream and of a table (`left`, `table`).

    The result has the columns of the left side, then those of the right; a column that both have is called `right_…` on the right, unless
    it is the key. In a window join, keys and window come first, and a name that two inputs have gets the input's name as prefix.
    """

    type: ClassVar[str] = "join"
    summary: ClassVar[str] = "Join streams in time, or a stream with a table."
    example: ClassVar[str] = """
        paid:
          type: join
          kind: left
          left: orders
          right: payments
          on: left.order_id = right.order_id
          within: {before: 0s, after: 1h}
    """
    arity: ClassVar[tuple[int, int | None]] = (1, None)

    left: str = ""
    """The stream on the left."""
    right: str = ""
    """The stream on the right."""
    table: dict[str, Any] | None = None
    """Instead of `right`: a table that is read as a whole, written like a `file` or `memory` source, such as `{type: file, path:
    customers.csv, format: csv}`."""
    refresh: Duration | None = None
    """How often the table is read again. Default: once per run."""
    on: tuple[str, ...] | Expression = Field(union_mode="left_to_right")
    """The columns that must be equal, as a list of names that both sides have; or a condition over `left.…` and `right.…`."""
    kind: Kind = "inner"
    """Which rows are returned without a match: none, those of the left side, of the right, or of both."""
    within: Within | None = None
    """The time of the right row relative to the left's."""
    window: Window | None = None
    """Instead of `within`, for any number of inputs: rows of the same window belong together."""
    unbounded: bool = False
    """Whether rows may be kept for ever, when there is neither `within` nor `window`. A side may be a changelog then; the result of such
    a join, and of an outer one, is a changelog."""

    @model_validator(mode="after")
    def _one_way(self) -> Join:
        if self.window is not None and (self.left or self.right or self.table or self.within):
            raise ValueError("with a `window`, the inputs stand in `from`, and there is no `left`, `right`, `table` or `within`")
        if self.window is None and not (self.left and bool(self.right) != (self.table is not None)):
            raise ValueError("a join needs `left` and `right`, `left` and `table`, or `from` and `window`")
        if self.table is not None and (self.within or self.kind in {"right", "full"}):
            raise ValueError("a join with a table has no `within`, and its kind is `inner` or `left`")
        if self.refresh is not None and self.table is None:
            raise ValueError("`refresh` is for tables")
        return self

    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.left, self.right) if name))

    @property
    def stateful(self) -> bool:
        return self.table is None

    @property
    def deterministic(self) -> bool:
        return self.table is None

    @property
    def rebuilt_per_epoch(self) -> bool:
        return self.table is not None

    @property
    def side_tables(self) -> tuple[str, ...]:
        if self.table is None:
            return ()
        place = self.table.get("path") or self.table.get("table") or ""
        again = f"read again every {self.refresh}" if self.refresh else "read once per run"
        return (f"{place or 'table'} ({self.table.get('type', '')}, {again})",)

    @property
    def needs_event_time(self) -> bool:
        return self.stateful and not self._is_unbounded

    @property
    def _is_unbounded(self) -> bool:
        return self.unbounded and self.table is None and self.within is None and self.window is None

    @property
    def incremental(self) -> bool:
        return self._is_unbounded and (self.kind != "inner" or self._over_changes or self._over_state or self.ttl is not None)

    @property
    def why_incremental(self) -> str:
        if not self.incremental:
            return ""
        if self.final:
            return ONCE
        if self.ttl is not None and self.kind == "inner" and not self._over_changes:
            return "its rows expire"
        return "an input is a changelog" if self._over_changes else f"a {self.kind} join without a time bound"

    @property
    def matching(self) -> Matching:
        return parse_condition(self.on)

    def closes(self, input_name: str, event_time: str) -> str:
        return closes(self.window, quote_column(event_time)) if self.window is not None else quote_column(event_time) if event_time else ""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        if self.window is not None:
            return window.output(self, inputs)
        if self.incremental:
            schema = interval.output(self, table_of(inputs.get(self.left)), table_of(inputs.get(self.right)))
            return schema.append(pa.field(OP, pa.string())) if schema is not None and not self.final else schema
        right = table.schema_of(self) if self.table is not None else inputs.get(self.right)
        return interval.output(self, inputs.get(self.left), right)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        if self.window is not None:
            return window.problems(self, inputs)
        if self.table is not None:
            return table.problems(self, inputs, directory)
        return interval.problems(self, inputs)

    def open(self, context: NodeContext) -> TransformRun:
        return table.TableJoinRun(self, context) if self.table is not None else super().open(context)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        if self.window is not None:
            return window.apply(self, frames, context)
        result = interval.apply(self, frames, context)
        if context.relational or not self.incremental or self.final:
            return result
        from pyspark.sql import functions as F

        return result.withColumn(OP, F.lit(UPDATE))

    def refuses_isolation(self) -> str:
        return "no single row can fail in a join; filter or compute before it"
