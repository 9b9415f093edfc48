"""Spans: what a thread does during an epoch. Each has a kind, and the step of the epoch that it belongs to.

Spans nest, and only the time that a span does not pass on to the spans inside it is its own. So the own times of all spans of an epoch add
up to the time of the epoch's function, whatever is wrapped and whatever is not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["python", "jvm", "target", "files", "fsync", "profiler"]
_WALL = time.time() - time.perf_counter()


@dataclass(frozen=True, slots=True)
class Span:
    """A finished span. Times are those of the wall clock, in seconds."""

    step: str
    kind: Kind
    start: float
    end: float
    own: float
    outermost: bool
    """Whether the span around it is of another kind: such a span counts as one call."""


@dataclass(slots=True)
class _Open:
    kind: Kind
    step: str
    start: float
    inside: float = 0.0


@dataclass
class EpochTrace:
    """What was measured in one call of an epoch's function."""

    query: str
    number: int
    spans: list[Span] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    """Seconds that the JVM's counters advanced."""
    new_workers: int = 0
    _stack: list[_Open] = field(default_factory=list)

    @property
    def start(self) -> float:
        return self.spans[-1].start

    @property
    def end(self) -> float:
        """The outermost span ends last."""
        return self.spans[-1].end

    def push(self, kind: Kind, step: str = "") -> None:
        around = self._stack[-1] if self._stack else None
        if around is not None and around.kind == "profiler":
            kind = "profiler"
        self._stack.append(_Open(kind, (around.step if around else "") or step, time.perf_counter()))

    def pop(self) -> None:
        span, now = self._stack.pop(), time.perf_counter()
        around = self._stack[-1] if self._stack else None
        if around is not None:
            around.inside += now - span.start
        outermost = around is None or around.kind != span.kind
        self.spans.append(Span(span.step, span.kind, span.start + _WALL, now + _WALL, now - span.start - span.inside, outermost))


class SpanRecorder:
    """The traces of all epochs. Threads that run no epoch are not recorded."""

    def __init__(self) -> None:
        self.epochs: list[EpochTrace] = []
        self.running: dict[int, EpochTrace] = {}
        """Thread → the epoch that it runs."""

    def current(self) -> EpochTrace | None:
        return self.running.get(threading.get_ident())

    def begin(self, query: str, number: int) -> EpochTrace:
        trace = self.running[threading.get_ident()] = EpochTrace(query, number)
        trace.push("python")
        return trace

    def end(self, *, finished: bool) -> None:
        """Epochs that failed or were refused are not kept."""
        trace = self.running.pop(threading.get_ident())
        trace.pop()
        if finished:
            self.epochs.append(trace)

    def timed(self, function: Callable[..., Any], kind: Kind, step: str | Callable[..., str] = "") -> Callable[..., Any]:
        """The function, with a span around each of its calls. `step` may be derived from the arguments; a step inside another one is a
        part of that.
        """

        def run(*args: Any, **named: Any) -> Any:
            trace = self.running.get(threading.get_ident())
            if trace is None:
                return function(*args, **named)
            trace.push(kind, step if isinstance(step, str) else step(*args, **named))
            try:
                return function(*args, **named)
            finally:
                trace.pop()

        return run
