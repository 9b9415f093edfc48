"""The spans of an epoch: those of the epoch itself, and those of the traced records in it.

Their ids follow from names, epoch and position alone, so that a repeated epoch gives the same spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from millstream.observe.events import EpochCommitted, EpochFinished, EpochPlanned, EpochStaged, Event
from millstream.observe.traced import Passage
from millstream.plan.topology import Topology

LINKS = 128
"""Links of a span, at most: OpenTelemetry's own limit."""

SpanKind = Literal["internal", "consumer", "producer"]


@dataclass(frozen=True, slots=True)
class Context:
    """A span's place: its trace and its own id, in hexadecimal digits."""

    trace: str
    span: str

    @classmethod
    def of(cls, traceparent: str) -> Context:
        _, trace, span, _ = traceparent.split("-")
        return cls(trace, span)


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Times are nanoseconds since 1970."""

    name: str
    context: Context
    parent: str
    start: int
    end: int
    kind: SpanKind = "internal"
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    links: tuple[Context, ...] = ()
    error: str = ""
    """Why it failed; empty when it did not."""


@dataclass(slots=True)
class OpenEpoch:
    """An epoch of which events arrive."""

    pipeline: str
    planned: EpochPlanned
    staged: list[EpochStaged] = field(default_factory=list)
    committed: list[EpochCommitted] = field(default_factory=list)

    def add(self, event: Event) -> None:
        if isinstance(event, EpochStaged):
            self.staged.append(event)
        elif isinstance(event, EpochCommitted):
            self.committed.append(event)

    @property
    def key(self) -> tuple[str, int]:
        return self.planned.query, self.planned.epoch

    @property
    def context(self) -> Context:
        digest = _digest(self.pipeline, *self.key, self.planned.planned_at)
        return Context(digest[:32], digest[32:48])

    def spans(self, topology: Topology, passages: Iterable[Passage], end: Event, error: str = "") -> Iterator[Span]:
        """All spans, up to the event with which the epoch ended: it has finished, or failed."""
        records = Records(topology, [*passages], self._commits, {each.sink for each in self.staged})
        yield from self._own_spans(end.at, error)
        yield from records.node_spans(self.context, self._about)
        if isinstance(end, EpochFinished):  # a failed epoch is repeated, with the same records
            yield from records.spans(self._about)

    @property
    def _about(self) -> dict[str, str | int]:
        return {"millstream.query": self.planned.query, "millstream.epoch": self.planned.epoch}

    @property
    def _commits(self) -> dict[str, int]:
        return {sink: _nanos(each.at) for each in self.committed for sink in each.sinks}

    def _own_spans(self, end: float, error: str) -> Iterator[Span]:
        context = self.context
        last = max([self.planned.at, *(each.at for each in (*self.staged, *self.committed)), end])
        yield Span("epoch", context, "", _nanos(self.planned.at), _nanos(last), attributes=self._about, error=error)
        for stage in self.staged:
            rows = {} if stage.rows is None else {"millstream.rows": stage.rows}
            yield self._step("stage", stage.sink, stage.at, stage.seconds, rows)
        for commit in self.committed:
            yield self._step("commit", ", ".join(commit.sinks), commit.at, commit.seconds, {})

    def _step(self, step: str, sink: str, at: float, seconds: float, more: Mapping[str, int]) -> Span:
        about = {**self._about, "millstream.node": sink, **more}
        own = Context(self.context.trace, child(self.context.span, f"{step} {sink}"))
        return Span(f"{step} {sink}", own, self.context.span, _nanos(at - seconds), _nanos(at), "producer", about)


class Records:
    """The traced records of an epoch. A span lasts from the node above to the node, or from a sink's input to its commit."""

    def __init__(self, topology: Topology, passages: list[Passage], commits: Mapping[str, int], staged: Set[str]) -> None:
        self._topology, self._commits = topology, commits
        self._passed: dict[str, dict[str, Passage]] = {}
        """Record → node → its first passage"""
        self._at: dict[str, list[Passage]] = {}
        """Node → passages"""
        below = self._sinks_below(staged)
        copies = (replace(passage, node=sink) for passage in passages for sink in below.get(passage.node, ()))
        for passage in [*passages, *copies]:
            nodes = self._passed.setdefault(passage.traceparent, {})
            if passage.node not in nodes:
                nodes[passage.node] = passage
                self._at.setdefault(passage.node, []).append(passage)

    def _sinks_below(self, staged: Set[str]) -> dict[str, list[str]]:
        """Node → the sinks that every record of it reaches: they have no passages of their own."""
        found: dict[str, list[str]] = {}
        for sink in self._topology.sinks:
            for name in sink.inputs:
                if sink.name in staged and not self._topology.node(name).hides_rows:
                    found.setdefault(name, []).append(sink.name)
        return found

    def spans(self, about: Mapping[str, str | int]) -> Iterator[Span]:
        for nodes in self._passed.values():
            source = next((passage for name, passage in nodes.items() if self._topology.node(name).kind == "source"), None)
            if source is not None:  # else it is beyond the limit of records
                yield from self._record(source, nodes, about)

    def _record(self, source: Passage, nodes: Mapping[str, Passage], about: Mapping[str, str | int]) -> Iterator[Span]:
        context = Context.of(source.traceparent)
        ends = {name: self._end_of(passage) for name, passage in nodes.items()}
        parent = Context.of(source.parent).span if source.parent and Context.of(source.parent).trace == context.trace else ""
        yield Span(source.node, context, parent, source.nanos, max(ends.values()), "consumer", _described(source, about))
        for name, passage in nodes.items():
            if passage is not source:
                own = Context(context.trace, child(context.span, name))
                kind: SpanKind = "producer" if self._topology.node(name).kind == "sink" else "internal"
                yield Span(name, own, context.span, self._start_of(passage, nodes), ends[name], kind, _described(passage, about))

    def _end_of(self, passage: Passage) -> int:
        return max(passage.nanos, self._commits.get(passage.node, 0))

    def _start_of(self, passage: Passage, nodes: Mapping[str, Passage]) -> int:
        if self._topology.node(passage.node).kind == "sink":
            return passage.nanos
        above = [nodes[name].nanos for name in self._topology.node(passage.node).inputs if name in nodes]
        return min([*above, passage.nanos])

    def node_spans(self, epoch: Context, about: Mapping[str, str | int]) -> Iterator[Span]:
        """A span of the epoch for each node that traced records have reached, with links to them. Where records become one, in a window
        or an aggregation, these links are what remains of their traces.
        """
        for node in self._topology.nodes:
            own = self._at.get(node.name, [])
            reached = own or [passage for name in node.inputs for passage in self._at.get(name, ())]
            if not reached or node.kind == "sink":
                continue
            nanos = [passage.nanos for passage in reached]
            links = tuple(Context.of(passage.traceparent) for passage in reached[:LINKS])
            more = {**about, "millstream.node": node.name, "millstream.traced_records": len(reached)}
            yield Span(
                node.name,
                Context(epoch.trace, child(epoch.span, node.name)),
                epoch.span,
                min(nanos),
                max(nanos),
                attributes=more,
                links=links,
            )


def child(span: str, name: str) -> str:
    """The id of a span's child."""
    return _digest(span, name)[:16]


def _described(passage: Passage, about: Mapping[str, str | int]) -> dict[str, str | int]:
    payload = {"millstream.payload": passage.payload} if passage.payload else {}
    return {**about, "millstream.node": passage.node, **payload}


def _digest(*parts: object) -> str:
    return hashlib.blake2b("\n".join(map(str, parts)).encode(), digest_size=24).hexdigest()


def _nanos(seconds: float) -> int:
    return int(seconds * 1e9)
