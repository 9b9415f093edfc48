"""What a component is told when the plan runs: its place in the pipeline, and what lasts as long as the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.state.store import Namespace

if TYPE_CHECKING:
    from millstream.clients.storage import Storage


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
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """Values of secrets, which user code may know and no text of a run may tell."""
    store: Namespace | None = field(default=None, repr=False, compare=False)
    """Named values of the node's own, kept beside the pipeline; None where there is no place for them."""

    @property
    def event_time(self) -> str:
        """The column that holds the event time of the first input; empty when none is declared."""
        return next(iter(self.event_times.values()), "")


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """A part of a planned epoch's input that is not as it was when the epoch was planned."""

    name: str
    gone: bool

    def __str__(self) -> str:
        return f"{self.name} {'is gone' if self.gone else 'was changed'}"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known about one epoch's reading of a source once it is over."""

    start: Any
    """The offset where it began; None at the very beginning."""
    end: Any
    seen: int | None
    """Rows that Spark counted in one scan; None when its count is no whole number of scans."""
    pushed: bool
    """Whether steps may have been pushed into the scan, so that a format with statistics gives fewer rows than it holds."""
    log: Storage
    """Spark's own log of the source, in the query's checkpoint."""
