"""A node: a component with a name, its inputs, and what every node can say (primary key, what happens to bad rows)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.errors import Span
from millstream.plan.components import Component, Sink, Source, Transform, Windowed
from millstream.plan.options import Columns
from millstream.plan.outcomes import DeadLetter, OnError, letter_of
from millstream.plan.time import EventTime

__all__ = ["CommonOptions", "DeadLetter", "Node", "NodeTelemetry", "OnError", "WiredOptions"]


class NodeTelemetry(BaseModel):
    """Names for what the run reports about a node."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: dict[str, str] = {}
    """Labels that every reported fact about the node carries."""


class CommonOptions(BaseModel):
    """Options that every node has beside its component's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    """A sentence for readers of the plan."""
    primary_key: Columns = ()
    """The columns that identify a row."""
    on_error: OnError = "fail"
    """What happens to a row that the node cannot handle: `fail` stops the pipeline, `drop` leaves it out and counts it,
    `{dead_letter: SINK}` sends it to a sink."""
    event_time: EventTime | None = None
    """When the rows happened: the column, and how long to wait for late ones. For sources and transforms."""
    telemetry: NodeTelemetry = NodeTelemetry()
    """Names for what the run reports about the node."""
    connection: str = ""
    """The connection whose options the node uses. Default: the one named after its type."""


class WiredOptions(CommonOptions):
    """Common options of nodes that read other nodes."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    inputs: Columns = Field(default=(), alias="from")
    """The node, or nodes, that this one reads."""


@dataclass(frozen=True, slots=True)
class Node:
    """One place in the topology. `spans` leads from a field's path to its place in the user's file."""

    name: str
    component: Component
    inputs: tuple[str, ...] = ()
    options: CommonOptions = CommonOptions()
    span: Span | None = field(default=None, compare=False)
    spans: dict[tuple[str, ...], Span] = field(default_factory=dict, compare=False, hash=False, repr=False)

    @property
    def kind(self) -> Literal["source", "transform", "sink"]:
        if isinstance(self.component, Source):
            return "source"
        return "sink" if isinstance(self.component, Sink) else "transform"

    @property
    def on_error(self) -> OnError:
        own = self.component.rejects if isinstance(self.component, Transform) else None
        return own or self.options.on_error

    @property
    def dead_letter(self) -> str | None:
        return letter_of(self.on_error)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns that identify a row: as the user says, or as the node knows."""
        return self.options.primary_key or (self.component.identity if isinstance(self.component, Transform) else ())

    @property
    def stateful(self) -> bool:
        """Whether the node remembers rows across epochs."""
        return isinstance(self.component, Transform) and self.component.stateful

    @property
    def late(self) -> OnError | None:
        """What the user wants done with rows that come too late; None when nothing was said."""
        return self.component.late if isinstance(self.component, Windowed) else None

    @property
    def letters(self) -> tuple[str, ...]:
        """Sinks that take rows which the node could not."""
        return tuple(name for name in (self.dead_letter, letter_of(self.late)) if name)

    @property
    def isolates(self) -> bool:
        """Whether bad rows are told apart instead of failing the epoch."""
        return self.on_error != "fail" and (not isinstance(self.component, Sink) or self.component.judges)

    @property
    def dear(self) -> bool:
        """Whether computing the node twice costs more than keeping its rows."""
        return isinstance(self.component, Source | Transform) and self.component.dear

    def place(self, *path: str) -> Span | None:
        """Where a field stands, or the nearest thing around it."""
        while path:
            if path in self.spans:
                return self.spans[path]
            path = path[:-1]
        return self.span

    def text_place(self, *path: str, line: int, column: int, width: int = 1) -> Span | None:
        """A place inside a text field, such as a column in a query."""
        base = self.spans.get((*path, str(line)))
        if base is None or not line:
            return self.place(*path)
        start = base.column + column - 1
        return replace(base, column=start, end=start + max(1, width))
