"""What happens in a run, as typed events. A class is one kind of event; its snake-case name is the name of the kind.

Events are plain values without data of users, except `PRIVATE` ones, which exist only while somebody looks at a node. As JSON an event
has the version of this format, so that an older history stays readable: within a version, kinds and fields are only added.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

from millstream.observe.facts import State, WatermarkFacts
from millstream.observe.metrics import Kind

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""

    at: float = field(default_factory=time.time)
    """In seconds since 1970, by the clock of the machine that drives the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run has taken its checkpoint."""

    pipeline: str
    run: str
    """A name of this run: no other run of any pipeline has it."""
    process: int
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanged(Event):
    """The run is in another state."""

    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChanged(Event):
    """A query is in another state."""

    query: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlanned(Event):
    """Spark has decided what an epoch reads, and the epoch begins."""

    query: str
    epoch: int
    planned_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStaged(Event):
    """A sink has written the rows of an epoch where no reader sees them."""

    query: str
    epoch: int
    sink: str
    seconds: float
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCommitted(Event):
    """Sinks have committed an epoch together."""

    query: str
    epoch: int
    sinks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished(Event):
    """All sinks hold an epoch."""

    query: str
    epoch: int
    seconds: float
    rows_out: Mapping[str, int]
    """Sink → rows, where the sink counts them."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    watermark: WatermarkFacts | None = None
    bytes_out: Mapping[str, int] = field(default_factory=dict)
    """Sink → bytes as they are written, where the sink knows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead(Event):
    """Spark has reported what an epoch read. None: it is not known."""

    query: str
    rows: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged(Event):
    """Facts of a node that are not sums: its state, its waiting rows."""

    node: str
    kind: Kind | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """A message for the user."""

    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarting(Event):
    """A query, or the whole run, starts again after a temporary failure."""

    query: str
    message: str
    attempt: int
    pause: float
    code: str = ""
    """The code of the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    """A failure has ended the run."""

    code: str
    message: str
    node: str = ""
    detail: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Event):
    """The totals of a run at one moment, every few seconds: what charts are drawn from."""

    seconds: float
    nodes: Mapping[str, Mapping[str, int]]
    """Node → the counts that are known."""
    queries: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSampled(Event):
    """Rows of a node, for those who look at it. They are not kept on disk."""

    node: str
    query: str
    epoch: int
    rows: tuple[str, ...]
    """JSON objects."""
    read_again: bool
    """Whether the epoch's input was read again for it, as the node is above the root of a running query."""
    where: str = ""
    """The filter that they passed."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column → its type in Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRefused(Event):
    """Rows of a node could not be sampled, for those who look at it. It is not kept on disk: its text may contain values of a row."""

    node: str
    query: str
    epoch: int
    where: str = ""
    code: str
    message: str
    detail: str = ""
    help: str = ""


PRIVATE = (RowsSampled, RowsRefused)


def kind_of(event: Event | type[Event]) -> str:
    """`EpochFinished` → `epoch_finished`"""
    name = (event if isinstance(event, type) else type(event)).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def as_dict(event: Event) -> dict[str, Any]:
    """Plain data for JSON, without fields that have their default."""
    kind = kind_of(event)
    shown: dict[str, Any] = {"v": VERSION, "event": kind}
    for name, default in _defaults(kind):
        value = getattr(event, name)
        if value != default:
            shown[name] = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return shown


@cache
def _defaults(kind: str) -> tuple[tuple[str, Any], ...]:
    """The fields of a kind with their defaults; the time has none, as it is always shown."""
    return tuple((each.name, MISSING if each.name == "at" else _default(each)) for each in fields(KINDS[kind]))


def _default(each: Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def from_dict(data: Mapping[str, Any]) -> Event | None:
    """The event; None for a kind that this version does not know. Fields that it does not know are left out."""
    kind = KINDS.get(str(data.get("event")))
    if kind is None or data.get("v") != VERSION:
        return None
    known = {each.name for each in fields(kind)}
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in known}
    if isinstance(values.get("watermark"), Mapping):
        values["watermark"] = WatermarkFacts(**values["watermark"])
    try:
        return kind(**values)
    except TypeError:  # a field is missing: another version has written the line
        return None


KINDS: Mapping[str, type[Event]] = {
    kind_of(each): each for each in list(globals().values()) if isinstance(each, type) and issubclass(each, Event) and each is not Event
}
