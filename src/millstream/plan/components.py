"""The protocols that every source, transform and sink follows. One component = one class = one YAML block = one page of docs.

A component is a frozen model of its options. Python code constructs it, YAML names it by its type, and both get the same
checks. Spark appears only inside `read`, `apply`, `stage` and `commit`, which run when the plan does.

Rows that a node cannot handle leave it in the column `REJECT` (raw row and error; null for good rows); the engine tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from millstream.plan.options import Duration
from millstream.plan.outcomes import OnError
from millstream.state.store import Namespace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.clients.storage import Storage
    from millstream.plan.tables import LookupTable

REJECT = "_reject"
Guarantee = Literal["exactly_once", "at_least_once"]
OutputMode = Literal["append", "update"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What a component finds wrong with itself: the field, and a sentence."""

    code: str
    message: str
    field: str = ""
    help: str = ""
    level: Literal["error", "warning"] = "error"
    line: int = 0
    """For text fields: line and column inside the text, from 1."""
    column: int = 0
    width: int = 1


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a component is told about its place in the pipeline."""

    name: str
    directory: Path
    """Where the pipeline's own files are."""
    storage: Storage
    """The node's folder in the checkpoint."""
    isolate: bool = False
    """Whether bad rows must come out in `REJECT` instead of failing."""
    schema: pa.Schema | None = None
    """A source's pinned schema."""
    clock: str = ""
    """The epoch's time, for `now()`."""
    aggregates: tuple[str, ...] = ()
    """The user's aggregate functions, which SQL calls by collecting lists."""
    event_times: Mapping[str, str] = field(default_factory=dict)
    """Input → the column that holds its event time, where one is declared."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What the node keeps for the length of a run."""
    dry: bool = False
    """Whether the plan is only looked at: nothing may be made or written."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What all nodes together keep for the length of a run."""
    pipeline: str = ""
    """The pipeline's name."""
    primary_key: tuple[str, ...] = ()
    """The columns that the node is keyed by, where it says so."""
    store: Namespace | None = field(default=None, repr=False, compare=False)
    """Named values of the node's own, kept beside the pipeline; None where there is no place for them."""

    @property
    def event_time(self) -> str:
        """The column that holds the event time of the first input; empty when none is declared."""
        return next(iter(self.event_times.values()), "")


@dataclass(frozen=True, slots=True)
class Epoch:
    """One micro-batch, as a sink sees it. `query` and `sink` are the ledger's key, `digest` tells two histories apart."""

    query: str
    sink: str
    number: int
    digest: str
    time: str
    context: NodeContext | None = field(default=None, repr=False, compare=False)
    """The sink's place in the pipeline; the engine gives it."""
    repeatable: bool = False
    """Whether computing its rows again gives the same rows. When in doubt, it does not."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The last epoch that a target holds."""

    epoch: int
    digest: str


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows that are written and not yet visible."""

    rows: int | None
    """None: the sink cannot tell."""
    payload: Any = field(default=None)


class Component(BaseModel):
    """Options of one node."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, arbitrary_types_allowed=True)

    type: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists and docs; the class docstring says more."""
    example: ClassVar[str] = ""
    """A YAML block that a test loads."""
    extra: ClassVar[str] = ""
    """The optional dependency (and jars) that it needs."""
    adjustable: ClassVar[frozenset[str]] = frozenset()
    """Options that may change between runs without touching what progress means."""
    real_time: ClassVar[bool] = False
    """Whether it can handle rows one by one as they come, in Spark's own operators; a sink then has `stream`."""
    connects: ClassVar[bool] = False
    """Whether it reaches an outside system by a connection, whose options are its own where it does not give them itself."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        """The connection that a node with these options uses when it names none."""
        return cls.type

    def extras(self) -> tuple[str, ...]:
        """The extras that these options need."""
        return (self.extra,) if self.extra else ()

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        """What the schema of options cannot say."""
        return []

    def __hash__(self) -> int:
        """Options may hold maps, which have no hash of their own; their text has."""
        return hash((type(self), self.model_dump_json()))


class Source(Component):
    """Where rows come from."""

    @property
    def dear(self) -> bool:
        """Whether reading twice costs more than keeping what was read."""
        return True

    @property
    def bounded(self) -> bool:
        """Whether the input ends."""
        return False

    @property
    def deterministic(self) -> bool:
        """Whether reading the same offsets again gives the same rows."""
        return True

    @property
    def self_ending(self) -> bool:
        """Whether Spark's available-now trigger finds the end; else `exhausted` tells."""
        return True

    @property
    def at_once(self) -> bool:
        """Whether Spark's available-now trigger takes one epoch from it and no more."""
        return False

    @property
    def poll_interval_ms(self) -> int:
        """The shortest time between two looks for new input."""
        return 0

    @property
    def small(self) -> bool:
        """Whether a bounded input is over in seconds, so that a quick start matters more than throughput."""
        return False

    def output(self) -> pa.Schema | None:
        """The schema, or None when it takes a look at the data: `discover`."""
        return None

    def discover(self, spark: SparkSession, context: NodeContext) -> pa.Schema:
        """Look at the data; the result is pinned in the checkpoint."""
        raise NotImplementedError

    @property
    def previews(self) -> bool:
        """Whether the schema is not declared, and `preview` may know it."""
        return False

    def preview(self, context: NodeContext) -> pa.Schema | None:
        """What `discover` would find, asked without Spark and within two seconds; nothing is written."""
        return None

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        raise NotImplementedError

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        """All rows that are there now, as a plain frame."""
        raise NotImplementedError

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        """Whether a bounded source ends at or before this offset. The engine gives the context: an end may be pinned there."""
        return False

    def learns(self, text: str, context: NodeContext) -> bool:
        """Whether a query's failure told the source something that it has looked up by now, so that the same rows will pass. The query
        is started again at once, and that counts as no restart.
        """
        return False

    def key_columns(self, context: NodeContext) -> tuple[str, ...]:
        """The primary key that the data names by itself, once the schema is known; it stands for one that the user does not give."""
        return ()

    def rows_between(self, start: Any, end: Any) -> int | None:
        """How many rows lie between two offsets, where they tell; `start` is None at the beginning."""
        return None

    @property
    def may_lose(self) -> bool:
        """Whether it goes on when rows are gone before they were read, and `lost` tells how many."""
        return False

    def lost(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> int:
        """How many rows between two offsets are gone."""
        return 0

    def find_bad(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> str:
        """The first row between two offsets that does not fit, as a sentence with its place; empty when it cannot be told."""
        return ""

    def parts(self, spark: SparkSession, context: NodeContext) -> int | None:
        """How many parts are read side by side; None when that does not matter."""
        return None

    def waiting(self, offset: Any, latest: Any) -> int | None:
        """How many rows lie between an offset and the last one that there is; None when offsets do not tell."""
        return None

    def reached(self, several: Sequence[Any]) -> Any:
        """The offset that all of several readers have come to; None when it cannot be told."""
        return several[0] if all(offset == several[0] for offset in several) else None

    def committed(self, spark: SparkSession, offset: Any, context: NodeContext) -> None:
        """Called once every query that reads the source has committed up to the offset, in a thread of its own. What it raises is noted
        and does no harm: this offset, or a later one, comes again.
        """


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

    def closes(self, input_name: str, event_time: str) -> str:
        """SQL over a row of an input: the moment when the first result that the row belongs to closes. Empty: never."""
        return ""


class Sink(Component):
    """Where rows go: staged first, then committed together with the epoch's number."""

    best: ClassVar[Guarantee] = "exactly_once"
    """What it can promise at most."""
    holds_ledger: ClassVar[bool] = True
    """Whether the target can tell which epoch it holds. Where it cannot, the pipeline's store keeps that."""
    judges: ClassVar[bool] = False
    """Whether there are rows that the target cannot take and `judged` can tell."""

    @property
    def promise(self) -> Guarantee:
        """What it promises with these options."""
        return self.best

    @property
    def group(self) -> str:
        """Sinks of one group, under one root, commit an epoch together; empty: on its own."""
        return ""

    def collapses(self, columns: Iterable[str], context: NodeContext) -> tuple[str, ...]:
        """The key by which each epoch is collapsed to its last rows before it is staged; empty: every row counts."""
        return ()

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        """Once, before the first epoch: finish what an earlier run left half done."""

    def ledger(self, spark: SparkSession, epoch: Epoch) -> LedgerEntry | None:
        """What the target says it holds."""
        return None

    def judged(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        """The rows with the column `REJECT`, which is not null for those that the target cannot take. Asked when `on_error` is not `fail`;
        `stage` then gets the rows without a reject.
        """
        raise NotImplementedError

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        raise NotImplementedError

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        """Make the rows visible, once."""

    def commit_together(self, works: Sequence[tuple[Staged, Epoch]]) -> None:
        """Make the rows of all sinks of a group visible at the same moment, once. Asked of one of them."""
        raise NotImplementedError

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        """Remove what was staged."""

    def stream(self, frame: DataFrame, context: NodeContext) -> DataStreamWriter:
        """Spark's own writer, for queries without epochs: at least once."""
        raise NotImplementedError
