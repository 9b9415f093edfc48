"""A node: a component with a name, its inputs, and the options that every node has (primary key, error policy)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.errors import Span
from millstream.plan.components import Component, EpochTail, HasSideOutputs, NamesInputs, Sink, Source, Transform, WaitsForClock, Windowed
from millstream.plan.error_policy import OnError, dead_letter_sink_of
from millstream.plan.event_time import EventTime
from millstream.plan.labels import Labels
from millstream.plan.options import Columns
from millstream.plan.tracing import Trace

Kind = Literal["source", "transform", "sink"]


class NodeTelemetry(BaseModel):
    """What the run reports about a node."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: Labels = {}
    """Labels that every reported fact about the node carries."""
    trace: Trace | None = None
    """For sources: which records are traced, `always`, or a share of them, or those that meet a condition."""


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
    """What the run reports about the node."""
    connection: str = ""
    """The connection whose options the node uses. Default: the one named after its type."""


class WiredOptions(CommonOptions):
    """Common options of nodes that read other nodes."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    inputs: Columns = Field(default=(), alias="from")
    """The node, or nodes, that this one reads."""


@dataclass(frozen=True, slots=True)
class Node:
    """One position in the topology. `spans` maps a field's path to its place in the user's file. Made by `make_node`."""

    kind: ClassVar[Kind]

    name: str
    component: Component
    inputs: tuple[str, ...] = ()
    options: CommonOptions = CommonOptions()
    span: Span | None = field(default=None, compare=False)
    spans: dict[tuple[str, ...], Span] = field(default_factory=dict, compare=False, hash=False, repr=False)

    @property
    def on_error(self) -> OnError:
        return self.options.on_error

    @property
    def dead_letter(self) -> str | None:
        return dead_letter_sink_of(self.on_error)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns that identify a row: declared by the user, or known to the node."""
        return self.options.primary_key

    @property
    def stateful(self) -> bool:
        """Whether the node keeps state across epochs."""
        return False

    @property
    def late(self) -> OnError | None:
        """The user's policy for late rows; None when not set."""
        return None

    @property
    def dead_letter_sinks(self) -> tuple[str, ...]:
        """Sinks that receive the node's rejects and late rows."""
        return tuple(name for name in (self.dead_letter, dead_letter_sink_of(self.late)) if name)

    @property
    def isolates(self) -> bool:
        """Whether rejects are isolated instead of failing the epoch."""
        return self.on_error != "fail"

    @property
    def hides_rows(self) -> bool:
        """Whether its readers may see fewer rows than it returns: without its rejects, its side outputs, or what its last step removes."""
        return self.isolates

    @property
    def expensive(self) -> bool:
        """Whether computing the node twice costs more than caching its rows."""
        return False

    def place(self, *path: str) -> Span | None:
        """The place of a field, or the nearest enclosing place."""
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


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """A source in the topology."""

    kind: ClassVar[Kind] = "source"
    component: Source

    @property
    def expensive(self) -> bool:
        return self.component.expensive


@dataclass(frozen=True, slots=True)
class TransformNode(Node):
    """A transform in the topology."""

    kind: ClassVar[Kind] = "transform"
    component: Transform

    @property
    def on_error(self) -> OnError:
        return self.component.rejects or self.options.on_error

    @property
    def primary_key(self) -> tuple[str, ...]:
        return self.options.primary_key or self.component.result_key

    @property
    def stateful(self) -> bool:
        return self.component.stateful

    @property
    def late(self) -> OnError | None:
        return self.component.late if isinstance(self.component, Windowed) else None

    @property
    def expensive(self) -> bool:
        return self.component.expensive

    @property
    def lookup_names(self) -> tuple[str, ...]:
        """The dynamic tables that it looks rows up in."""
        return self.component.lookup_names if isinstance(self.component, NamesInputs) else ()

    @property
    def has_tail(self) -> bool:
        """Whether its results need one more step per epoch."""
        return isinstance(self.component, EpochTail) and self.component.has_tail

    @property
    def hides_rows(self) -> bool:
        return self.isolates or self.has_tail or isinstance(self.component, HasSideOutputs)

    def waits_for_clock(self, directory: Path) -> bool:
        """Whether an epoch runs at every trigger, with or without rows."""
        return isinstance(self.component, WaitsForClock) and self.component.waits_for_clock(directory)


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """A sink in the topology."""

    kind: ClassVar[Kind] = "sink"
    component: Sink

    @property
    def isolates(self) -> bool:
        return self.on_error != "fail" and self.component.validates_rows


StreamNode = SourceNode | TransformNode
"""A node that other nodes can read."""
AnyNode = SourceNode | TransformNode | SinkNode


def make_node(
    name: str,
    component: Component,
    inputs: tuple[str, ...] = (),
    options: CommonOptions | None = None,
    span: Span | None = None,
    spans: dict[tuple[str, ...], Span] | None = None,
) -> AnyNode:
    """The node of the component's kind."""
    more = (inputs, options or CommonOptions(), span, spans or {})
    if isinstance(component, Source):
        return SourceNode(name, component, *more)
    if isinstance(component, Sink):
        return SinkNode(name, component, *more)
    assert isinstance(component, Transform)
    return TransformNode(name, component, *more)


def inputs_for(component: Component, declared: tuple[str, ...]) -> tuple[str, ...]:
    """A node's inputs: those that its text names, else those that are declared."""
    named = component.tables() if isinstance(component, NamesInputs) else ()
    return named or declared
