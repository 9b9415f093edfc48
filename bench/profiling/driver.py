"""What is wrapped on the driver while a pipeline is profiled: the steps of an epoch, calls of the JVM, files, and the target's clients."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.profiling.spans import EpochTrace, Kind, SpanRecorder

_LOOP = "millstream.engine.epoch.loop"
_STEPS = {
    "_load_plan": "load the plan",
    "_use_functions": "load the plan",
    "_require_same_inputs": "load the plan",
    "_lost_rows": "load the plan",
    "_frames": "build frames",
    "_fill_tables": "fill tables",
    "_advance_watermark": "watermark",
    "_finish": "finish",
}
_STORAGE = ("exists", "read", "put", "put_once", "names", "files", "size", "rename", "make", "sync", "delete")
_WRAPPED: tuple[tuple[str, str, tuple[str, ...], Kind], ...] = (
    ("millstream.clients.storage", "LocalStorage", _STORAGE, "files"),
    ("millstream.store.sqlite", "SqliteStore", ("get", "put_many"), "files"),
    ("os", "", ("fsync",), "fsync"),
    ("py4j.java_gateway", "GatewayClient", ("send_command",), "jvm"),
    ("psycopg", "", ("connect",), "target"),
    ("psycopg", "Connection", ("execute", "commit", "rollback", "close", "__exit__"), "target"),
    ("psycopg", "Cursor", ("execute", "executemany", "fetchone", "fetchall"), "target"),
    ("psycopg", "Pipeline", ("sync", "__exit__"), "target"),
    ("millstream.connectors.kafka.write.delivery", "", ("claim_lanes", "markers", "publish_small"), "target"),
)
"""Module, class, functions, kind. What is not installed is left out."""


@contextmanager
def wrapped_driver(recorder: SpanRecorder, begun: Callable[[EpochTrace], None], done: Callable[[EpochTrace], None]) -> Iterator[None]:
    """While the body runs, epochs are recorded. `begun` and `done` are called inside their spans."""
    with ExitStack() as stack:
        for module, owner, names, kind in _WRAPPED:
            place = _find(module, owner)
            for name in names:
                if place is not None and hasattr(place, name):
                    stack.enter_context(replaced(place, name, recorder.timed(getattr(place, name), kind)))
        for place, name, step in _step_functions():
            stack.enter_context(replaced(place, name, recorder.timed(getattr(place, name), "python", step)))
        loop = importlib.import_module(_LOOP)
        stack.enter_context(replaced(loop.EpochLoop, "__call__", _epoch(loop.EpochLoop.__call__, recorder, begun, done)))
        stack.enter_context(_wrapped_sinks(recorder, stack))
        yield


@contextmanager
def replaced(owner: Any, name: str, function: Any) -> Iterator[None]:
    """An attribute of a module or a class has another value in the body."""
    own = name in vars(owner)
    before = vars(owner).get(name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def _step_functions() -> list[tuple[Any, str, str | Callable[..., str]]]:
    loop, frames = importlib.import_module(_LOOP), importlib.import_module("millstream.engine.epoch.frames").EpochFrames
    durability = importlib.import_module("millstream.engine.epoch.durability").Durability
    maintenance = importlib.import_module("millstream.engine.incremental.maintenance").Maintenance
    return [
        *((loop.EpochLoop, name, step) for name, step in _STEPS.items()),
        (durability, "sync_plan", "sync Spark's plan"),
        (durability, "sync_state", "sync Spark's state"),
        (frames, "for_sink", lambda _, sink: f"build {sink.name}"),
        (frames, "count_rejects", "count rejects"),
        (frames, "run", "run the stream"),
        (maintenance, "write", "write the view"),
        (maintenance, "finish", "finish the view"),
        (loop, "commit_group", lambda group: f"commit {'+'.join(sink.node.name for sink in group)}"),
    ]


def _epoch(
    call: Any, recorder: SpanRecorder, begun: Callable[[EpochTrace], None], done: Callable[[EpochTrace], None]
) -> Callable[..., None]:
    def run(loop: Any, frame: Any, number: int) -> None:
        trace, finished = recorder.begin(loop.checkpoint.name, number), False
        try:
            _as_profiler(trace, begun)
            call(loop, frame, number)
            _as_profiler(trace, done)
            finished = True
        finally:
            recorder.end(finished=finished)

    return run


def _as_profiler(trace: EpochTrace, work: Callable[[EpochTrace], None]) -> None:
    trace.push("profiler", "profiler")
    try:
        work(trace)
    finally:
        trace.pop()


@contextmanager
def _wrapped_sinks(recorder: SpanRecorder, stack: ExitStack) -> Iterator[None]:
    """Sinks are of many classes: the `stage` of a class is wrapped when a run first asks for a sink of it."""
    lowering = importlib.import_module("millstream.engine.lowering.nodes").Lowering
    find, known = lowering.sink, set[type]()

    def sink(self: Any, node: Any) -> Any:
        run = find(self, node)
        kind = type(run)
        if kind not in known:
            known.add(kind)
            stage = recorder.timed(kind.stage, "python", lambda _run, _frame, epoch: f"stage {epoch.sink}")
            stack.enter_context(replaced(kind, "stage", stage))
        return run

    with replaced(lowering, "sink", sink):
        yield


def _find(module: str, owner: str) -> Any:
    try:
        found = os if module == "os" else importlib.import_module(module)
    except ImportError:
        return None
    return getattr(found, owner) if owner else found
