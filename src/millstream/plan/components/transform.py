"""Transforms: rows in, rows out; what they keep between epochs, and what they look up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from millstream.plan.components.component import Component
from millstream.plan.components.context import NodeContext
from millstream.plan.options import Duration
from millstream.plan.outcomes import OnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.plan.query import Place
    from millstream.plan.tables import LookupTable

OutputMode = Literal["append", "update"]


class Transform(Component):
    """Rows in, rows out."""

    dear: ClassVar[bool] = False
    side_column: ClassVar[str] = ""
    """The hidden column of a node with side outputs: null for its main rows, which are all that its readers see."""
    reads_sides: ClassVar[bool] = False
    """Whether it sees the hidden column of its input."""

    @property
    def deterministic(self) -> bool:
        """Whether the same rows give the same rows again."""
        return True

    @property
    def stateful(self) -> bool:
        """Whether it remembers rows across epochs."""
        return False

    @property
    def output_mode(self) -> OutputMode:
        """How the results of a stateful node come out: `append` once and final, `update` again whenever they change."""
        return "append"

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a result, so that a later one replaces an earlier one; empty when nothing is known."""
        return ()

    @property
    def needs_event_time(self) -> bool:
        """Whether results wait for a watermark, so that every input must have an event time."""
        return self.stateful and self.output_mode == "append"

    @property
    def keeps_clock(self) -> bool:
        """Whether a bounded input runs with the declared watermark, and not with one that waits for the end."""
        return False

    @property
    def renewed(self) -> bool:
        """Whether it is built anew for every epoch, and can be no part of the streaming plan."""
        return False

    @property
    def finishes(self) -> bool:
        """Whether `finish` has work to do, so that nothing else can join the streaming plan after the node."""
        return False

    def finish(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        """What is left to do with the results of one epoch, in plain batches."""
        return frame

    def ticks(self, directory: Path) -> bool:
        """Whether it waits for the clock, so that an epoch runs at every trigger, rows or not."""
        return False

    def tables(self) -> tuple[str, ...]:
        """Inputs that the component names itself, as SQL does."""
        return ()

    def mentions(self, name: str) -> Iterable[tuple[str, Place]]:
        """Where its texts name an input: the option, and the place in it."""
        return ()

    @property
    def readable(self) -> bool:
        """Whether the text that names its inputs could be read."""
        return True

    def spelt(self, names: Iterable[str]) -> Transform:
        """The component with its inputs named as the nodes are, where it names them itself in another case."""
        return self

    def lookup_table(self, name: str) -> LookupTable | None:
        """The table that SQL can look rows up in under the node's name, where the component is one."""
        return None

    def bound(self, tables: Mapping[str, LookupTable]) -> Transform:
        """The component, told which dynamic tables the pipeline has."""
        return self

    @property
    def looks_into(self) -> tuple[str, ...]:
        """The dynamic tables that it looks rows up in."""
        return ()

    def fill(self, frame: DataFrame, context: NodeContext) -> int:
        """Write the rows of an epoch into the dynamic table that the component is; how many there were."""
        raise NotImplementedError

    @property
    def rejects(self) -> OnError | None:
        """What happens to rows that it cannot handle, where it has an option of its own for that; it goes before `on_error`."""
        return None

    def tally(self, memory: Mapping[str, Any]) -> Mapping[str, int]:
        """What the node has counted itself since it was asked last: `hits` and `misses`."""
        return {}

    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    """How many inputs it takes: at least, at most."""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        """The schema that comes out, as far as it is known without Spark."""
        return None

    def reads(self, input_name: str, isolating: bool) -> int:
        """How often one run of it reads an input."""
        return 1

    def refuses_isolation(self) -> str:
        """Why single bad rows cannot be told apart here; empty when they can."""
        return ""

    def discover(self, inputs: Mapping[str, pa.Schema], directory: Path) -> pa.Schema | None:
        """The schema found by running user code on no rows; None leaves it to Spark."""
        return None

    def remembered(self, spark: SparkSession, url: str, node: str) -> Iterable[Mapping[str, Any]] | None:
        """The state in a query's checkpoint in the node's own words, each row with a `key`; None leaves it to Spark's reader."""
        return None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        raise NotImplementedError


class Windowed(Transform):
    """A stateful transform whose results close as time goes by."""

    allowed_lateness: Duration | None = None
    """How much longer than the watermark's delay to wait for late rows."""
    late: OnError | None = None
    """What happens to a row that comes after its result has closed: `fail`, `drop` or `{dead_letter: SINK}`. Such rows are counted
    in any case. Default: `drop`; and in a bounded input nothing is late unless this is set."""

    @property
    def keeps_clock(self) -> bool:
        return self.late is not None

    @property
    def waits(self) -> bool:
        """Whether rows can come too late, as far as that is known."""
        return self.stateful

    def closes(self, input_name: str, event_time: str) -> str:
        """SQL over a row of an input: the moment when the first result that the row belongs to closes. Empty: never."""
        return ""
