"""Times of the clients inside Spark's Python workers. The functions of connectors that travel there are wrapped before they are pickled;
the wrappers travel with them, and leave a line per call in a folder that this machine's workers can write to.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.profiling.driver import replaced
from bench.profiling.jobs import WorkerTime

_KAFKA, _POSTGRES = "millstream.connectors.kafka.worker.lanes", "millstream.connectors.postgres.worker.staging"
_WRAPPED = {
    (_KAFKA, "_open"): "Kafka: open the lane",
    (_KAFKA, "mark"): "Kafka: send the marker",
    (_KAFKA, "commit"): "Kafka: flush and commit",
    (_KAFKA, "send"): "Kafka: all of a lane",
    (_POSTGRES, "_copy"): "Postgres: create and copy",
    (_POSTGRES, "_stage"): "Postgres: connect, copy, commit",
}


@contextmanager
def wrapped_workers() -> Iterator[Callable[[], list[WorkerTime]]]:
    """While the body runs, calls are timed; the result reads what they took."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for (module, name), label in _WRAPPED.items():
            try:
                place = importlib.import_module(module)
            except ImportError:
                continue
            stack.enter_context(replaced(place, name, timed(getattr(place, name), label, folder)))
        yield lambda: _read(Path(folder))


def timed(function: Callable[..., Any], label: str, folder: str) -> Callable[..., Any]:
    """A function inside a function is always pickled by value, so the workers need not be able to import this module."""

    def run(*args: Any, **named: Any) -> Any:
        import os

        at, started = time.time(), time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            taken = (time.perf_counter() - started) * 1000
            with open(f"{folder}/{os.getpid()}", "a", encoding="utf-8") as file:  # noqa: PTH123 — as little as possible travels
                file.write(f"{at}\t{taken}\t{label}\n")

    return run


def _read(folder: Path) -> list[WorkerTime]:
    lines = [line.split("\t") for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    return [WorkerTime(float(at), label, float(ms)) for at, ms, label in lines]
