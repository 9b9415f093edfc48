"""The run objects of a plan's nodes: each is opened once, on first use, and lasts as long as the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from millstream.plan.components import Component, NodeContext, SinkRun, SourceRun, TransformRun
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, TransformNode


class Closes(Protocol):
    """A run object of any kind."""

    def close(self) -> None: ...


Run = TypeVar("Run", bound=Closes)


@dataclass(slots=True)
class _OpenRuns(Generic[Run]):
    """The opened components and their run objects. The plan of a half-done epoch may have another component of the same node: both are
    open then, each with its own run object.
    """

    runs: dict[tuple[str, int], tuple[Component, Run]] = field(default_factory=dict)
    """Name and id of a component → the component, which keeps the id its own, and the run object"""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Queries open run objects in threads of their own."""

    def get(self, node: AnyNode, opening: Callable[[], Run]) -> Run:
        key = (node.name, id(node.component))
        with self.lock:
            if key not in self.runs:
                self.runs[key] = (node.component, opening())
            return self.runs[key][1]


@dataclass(slots=True)
class NodeRuns:
    """The run objects, by kind."""

    tables: Mapping[str, TransformNode] = field(default_factory=dict)
    """The dynamic tables of the pipeline. All nodes share one run object per table, whichever plan they belong to."""
    _sources: _OpenRuns[SourceRun] = field(default_factory=_OpenRuns)
    _transforms: _OpenRuns[TransformRun] = field(default_factory=_OpenRuns)
    _sinks: _OpenRuns[SinkRun[Any]] = field(default_factory=_OpenRuns)

    def source(self, node: SourceNode, context: Callable[[AnyNode], NodeContext]) -> SourceRun:
        return self._sources.get(node, lambda: node.component.open(context(node)))

    def transform(self, node: TransformNode, context: Callable[[AnyNode], NodeContext]) -> TransformRun:
        shared = self.tables.get(node.name, node)
        return self._transforms.get(shared, lambda: shared.component.open(context(shared)))

    def sink(self, node: SinkNode, context: Callable[[AnyNode], NodeContext]) -> SinkRun[Any]:
        return self._sinks.get(node, lambda: node.component.open(context(node)))

    def close(self) -> list[tuple[str, Exception]]:
        """Close all run objects at the end of the run; the nodes that could not be closed, with the reason."""
        failed: list[tuple[str, Exception]] = []
        for opened in (self._sources, self._transforms, self._sinks):
            for (name, _), (_, run) in opened.runs.items():
                try:
                    run.close()
                except Exception as error:  # noqa: BLE001 — the others are closed all the same
                    failed.append((name, error))
        return failed
