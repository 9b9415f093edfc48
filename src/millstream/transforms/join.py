"""Joins of streams in time, and of a stream with a table.

Two streams are joined by Spark's own operator: rows are kept until the time bound says that no partner can come any more. Streams in one
window are brought together by one aggregate over all of them. A table is read as a whole, again every `refresh`, and needs no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from millstream.plan.components import NodeContext, Problem, Windowed
from millstream.plan.options import Duration, Expression
from millstream.plan.windows import Window, closes
from millstream.transforms import interval_join, table_join, window_join
from millstream.transforms.checks import quoted
from millstream.transforms.matching import Matching, matching

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


class Join(Windowed):
    """Brings rows of two streams together that match and lie close in time (`left`, `right`, `within`); rows of several streams that
    share a key and a window (`from`, `window`); or rows of a stream and of a table (`left`, `table`).

    What comes out has the columns of the left side, then those of the right; a column that both have is called `right_…` on the right,
    unless it is the key. In a window join, keys and window come first, and a name that two inputs have is preceded by the input's.
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
    """Instead of `right`: a table that is read as a whole, as a `file` or `memory` source is written, such as
    `{type: file, path: customers.csv, format: csv}`."""
    refresh: Duration | None = None
    """How often the table is read again. Default: once per run."""
    on: tuple[str, ...] | Expression = Field(union_mode="left_to_right")
    """The columns that must be equal, as a list of names that both sides have; or a condition over `left.…` and `right.…`."""
    kind: Kind = "inner"
    """Which rows come out without a partner: none, those of the left side, of the right, or of both."""
    within: Within | None = None
    """The time of the right row relative to the left's."""
    window: Window | None = None
    """Instead of `within`, for any number of inputs: rows of the same window belong together."""
    unbounded: bool = False
    """Whether rows may be kept for ever, when there is neither `within` nor `window`."""

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
    def renewed(self) -> bool:
        return self.table is not None

    @property
    def needs_event_time(self) -> bool:
        return self.stateful and not (self.unbounded and self.within is None and self.window is None)

    @property
    def matching(self) -> Matching:
        return matching(self.on)

    def closes(self, input_name: str, event_time: str) -> str:
        return closes(self.window, quoted(event_time)) if self.window is not None else quoted(event_time) if event_time else ""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        if self.window is not None:
            return window_join.output(self, inputs)
        right = table_join.schema_of(self) if self.table is not None else inputs.get(self.right)
        return interval_join.output(self, inputs.get(self.left), right)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        if self.window is not None:
            return window_join.problems(self, inputs)
        if self.table is not None:
            return table_join.problems(self, inputs, directory)
        return interval_join.problems(self, inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        if self.window is not None:
            return window_join.apply(self, frames, context)
        if self.table is not None:
            return table_join.apply(self, frames[self.left], context)
        return interval_join.apply(self, frames, context)

    def refuses_isolation(self) -> str:
        return "no single row can fail in a join; filter or compute before it"
