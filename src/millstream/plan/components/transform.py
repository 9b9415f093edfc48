"""Transforms: rows in, rows out.

A transform needs `output`, its schema, and `apply`, which turns frames into a frame. Everything else has a default. A transform with state
for the length of a run overrides `open` and returns its own run object. Optional abilities are the capabilities below: a transform, or its
run object, has one when it has its methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import pyarrow as pa
from pydantic import PrivateAttr

from millstream.plan.components.component import Component, Problem, TextPlace
from millstream.plan.components.context import NodeContext
from millstream.plan.components.lineage import Origins
from millstream.plan.error_policy import OnError
from millstream.plan.options import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.plan.lookup_tables import LookupTable

OutputMode = Literal["append", "update"]
ONCE = "its result is returned once, since its sinks take no updates"
"""Why a node is incremental whose sinks cannot apply its changes."""


class Transform(Component):
    """The options of a transform."""

    plugin_kind: ClassVar[str] = "transform"
    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    """How many inputs it takes: minimum, maximum."""
    expensive: ClassVar[bool] = False
    """Whether computing it twice costs more than caching its rows."""
    limited: ClassVar[bool] = False
    """Whether a limit of time decides which rows are rejects: computed again, it may decide otherwise."""
    _over_changes: bool = PrivateAttr(default=False)
    _over_state: bool = PrivateAttr(default=False)
    _returned_once: bool = PrivateAttr(default=False)

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        """The output schema, as far as it is known without Spark."""
        return None

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        """What its columns are made of, for lineage; None, and columns that are left out: not known."""
        return None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        """The output frame: of the streaming plan, or of one epoch."""
        raise NotImplementedError

    def open(self, context: NodeContext) -> TransformRun:
        """The run object that transforms."""
        return TransformRun(self, context)

    @property
    def deterministic(self) -> bool:
        """Whether the same input always gives the same output."""
        return True

    @property
    def stateful(self) -> bool:
        """Whether it keeps state across epochs."""
        return False

    @property
    def incremental(self) -> bool:
        """Whether the engine keeps its result up to date from the changes of its inputs: `apply` then computes it from whole tables."""
        return False

    @property
    def native_parts(self) -> bool:
        """Whether it is incremental and Spark's stream may compute parts of it, if its inputs have an event time: aggregates by window,
        and joins within a time.
        """
        return False

    @property
    def why_incremental(self) -> str:
        """Why Spark cannot run it as a stream by itself, if it is incremental."""
        return ""

    @property
    def keeps_changes(self) -> bool:
        """Whether the result over a changelog is one: a query that names `_op` may return plain rows."""
        return True

    @property
    def final(self) -> bool:
        """Whether it returns its result once, as plain rows, when its bounded inputs have ended."""
        return self.incremental and self._returned_once

    def kept_up_to_date(self) -> Self | None:
        """The transform as an incremental one; None if it has no such form."""
        return None

    def returned_once(self) -> Self | None:
        """The transform as one that returns its result once; None if it has no such form, or the user asks for changes."""
        if not self.incremental or self.final:
            return None
        copy = self.model_copy()
        copy._returned_once = True
        return copy

    def over(self, *, changes: bool, state: bool) -> Self:
        """The transform below other nodes: whether an input is a changelog, and whether a node above keeps state."""
        if (changes, state) == (self._over_changes, self._over_state):
            return self
        copy = self.model_copy()
        copy._over_changes, copy._over_state = changes, state
        return copy

    @property
    def output_mode(self) -> OutputMode:
        """How a stateful node emits results: `append` once and final, `update` whenever they change."""
        return "append"

    @property
    def result_key(self) -> tuple[str, ...]:
        """The columns that identify a result, so that a later one replaces an earlier one; empty when unknown."""
        return ()

    @property
    def needs_event_time(self) -> bool:
        """Whether results wait for a watermark, so that every input needs an event time."""
        return self.stateful and self.output_mode == "append"

    @property
    def keeps_watermark(self) -> bool:
        """Whether a bounded input uses the declared watermark instead of one that waits for the end."""
        return False

    @property
    def rebuilt_per_epoch(self) -> bool:
        """Whether it is rebuilt for every epoch, and so cannot be part of the streaming plan."""
        return False

    @property
    def rejects(self) -> OnError | None:
        """The policy for its rejects, where the transform has its own option for that; it takes precedence over `on_error`."""
        return None

    def reads(self, input_name: str, isolating: bool) -> int:
        """How often one run of it reads an input."""
        return 1

    def refuses_isolation(self) -> str:
        """Why rejects cannot be isolated here; empty when they can."""
        return ""


class TransformRun:
    """A transform during a run. State that must last from epoch to epoch is kept in attributes of a subclass."""

    def __init__(self, transform: Transform, context: NodeContext) -> None:
        self.transform, self.context = transform, context

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        """The output frame. `context` is the node's, with the clock and the event times of this application."""
        return self.transform.apply(frames, context)

    def close(self) -> None:
        """Called at the end of the run."""


class Windowed(Transform):
    """A stateful transform whose results close when the watermark advances."""

    allowed_lateness: Duration | None = None
    """How much longer than the watermark's delay to wait for late rows."""
    late: OnError | None = None
    """What happens to a row that comes after its result has closed: `fail`, `drop` or `{dead_letter: SINK}`. Such rows are counted
    in any case. Default: `drop`; and in a bounded input nothing is late unless this is set."""

    @property
    def keeps_watermark(self) -> bool:
        return self.late is not None

    @property
    def waits(self) -> bool:
        """Whether rows can be late, as far as that is known."""
        return self.stateful

    def closes(self, input_name: str, event_time: str) -> str:
        """SQL over a row of an input: when the first result that contains the row closes. Empty: its windows are in Spark's plan, or it
        has none.
        """
        return ""


class Expiring(Transform):
    """A transform that can forget the rows of its inputs after some time, if it is incremental."""

    ttl: Duration | None = None
    """How long a row counts after its arrival: the result is that of the rows of the last `30d`, and changes when a row expires. A row of
    a changelog expires when its last change is that old. Default: for ever."""


class NamesInputs:
    """A transform whose text names its inputs, as SQL does."""

    def tables(self) -> tuple[str, ...]:
        """The inputs, in the order in which the text names them."""
        raise NotImplementedError

    def mentions(self, name: str) -> Iterable[tuple[str, TextPlace]]:
        """Where its texts name an input: the option, and the place in it."""
        return ()

    @property
    def readable(self) -> bool:
        """Whether the text could be parsed."""
        return True

    def with_node_names(self, names: Iterable[str]) -> Self:
        """The component with its inputs spelled as the nodes are, where the text uses another case."""
        return self

    def with_tables(self, tables: Mapping[str, LookupTable]) -> Self:
        """The component with the pipeline's dynamic tables."""
        return self

    @property
    def lookup_names(self) -> tuple[str, ...]:
        """The dynamic tables that it looks rows up in."""
        return ()


@runtime_checkable
class ActsAsTable(Protocol):
    """A node that is a table: SQL looks up rows in it, and no rows flow through it."""

    def lookup_table(self, name: str) -> LookupTable: ...


@runtime_checkable
class HasBranches(Protocol):
    """A route: other nodes read its branches, not the node itself."""

    @property
    def branches(self) -> tuple[str, ...]: ...


@runtime_checkable
class ReadsBranch(Protocol):
    """It reads one branch of its input, which is a route."""

    @property
    def reads_branch(self) -> str: ...


@runtime_checkable
class HasSideTables(Protocol):
    """It looks up rows in tables that are not nodes."""

    @property
    def side_tables(self) -> tuple[str, ...]:
        """A short description of each table."""
        ...


@runtime_checkable
class HasSideOutputs(Protocol):
    """Its rows have a hidden column: null for the main rows, which its readers see, else the name of a side output."""

    side_column: ClassVar[str]


@runtime_checkable
class ReadsSideOutput(Protocol):
    """It reads the hidden column of its input."""

    reads_side_output: ClassVar[bool]


@runtime_checkable
class WaitsForClock(Protocol):
    """Its state may wait for the clock, and not only for rows."""

    def waits_for_clock(self, directory: Path) -> bool:
        """Whether an epoch runs at every trigger, with or without rows."""
        ...


@runtime_checkable
class RefusesIncremental(Protocol):
    """Its options may show that its result cannot be kept up to date."""

    def incremental_problems(
        self, inputs: Mapping[str, pa.Schema | None], declared: Collection[str], *, returned: bool
    ) -> Iterable[Problem]:
        """Why not. `declared` are the inputs whose columns are spelled as they were declared; `returned`: the result is that of the whole
        query, and nothing incremental reads it.
        """
        ...


@runtime_checkable
class ReadsState(Protocol):
    """Can decode its state in a checkpoint; without it, Spark's own state reader shows the raw rows."""

    def read_state(self, spark: SparkSession, url: str, node: str) -> Iterable[Mapping[str, Any]]:
        """The state in a query's checkpoint, each row with a `key`."""
        ...


class EpochTail:
    """A transform whose results need one more step per epoch, so that no other node can join the streaming plan after it. Its run object
    has `finish`.
    """

    @property
    def has_tail(self) -> bool:
        raise NotImplementedError


@runtime_checkable
class FinishesEpochs(Protocol):
    """A run object with the step that `EpochTail` announces."""

    def finish(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        """The last step on the results of one epoch, in plain batches."""
        ...


@runtime_checkable
class FillsTable(Protocol):
    """A run object that writes the rows of an epoch into the dynamic table that the node is."""

    def fill(self, frame: DataFrame) -> int:
        """Write the rows; how many there were."""
        ...


@runtime_checkable
class CountsLookups(Protocol):
    """A run object that counts hits and misses itself."""

    def take_counts(self) -> tuple[int, int] | None:
        """Hits and misses since the last call; None when nothing was counted."""
        ...
