"""What a plugin gets on a worker: the schema of its rows, counters, a logger with the node's name, and whether to go on.

This module is pickled to the workers with the plugin (`pickling.py`), so it imports only modules that are pickled too.
"""

from __future__ import annotations

import logging
import os
import secrets
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from millstream.worker.masking import MASK


class TemporaryFailure(Exception):  # noqa: N818 — it says what kind of failure it is, as `TemporaryError` does of Millstream's own
    """A plugin raises it when its system is away for a moment: the epoch is tried again."""


class Metrics(Protocol):
    """Counts facts of a node; the report and the inspector show them."""

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of the node."""
        ...


@dataclass(frozen=True)
class NoMetrics:
    """Counts nothing: where no run is going on."""

    def count(self, name: str, number: int = 1) -> None:
        return None


class CountsParam:
    """How Spark adds up counters of tasks: (node, counter) → number."""

    def zero(self, value: dict[Any, int]) -> dict[Any, int]:
        return {}

    def addInPlace(self, value1: dict[Any, int], value2: dict[Any, int]) -> dict[Any, int]:  # noqa: N802 — Spark's name
        for key, number in value2.items():
            value1[key] = value1.get(key, 0) + number
        return value1


@dataclass(frozen=True)
class TaskMetrics:
    """Counters that travel back to the driver when the task has succeeded. A failed task counts nothing."""

    node: str
    accumulator: Any

    def count(self, name: str, number: int = 1) -> None:
        self.accumulator.add({(self.node, name): number})


@dataclass(frozen=True)
class Task:
    """A part of the work of a node, on a worker."""

    node: str
    schema: pa.Schema
    """The schema of the rows that the node gets."""
    metrics: Metrics = field(default_factory=NoMetrics)
    parent: int = 0
    """The process that started this one. It changes when the driver is gone."""
    attempt: int = 0
    """A number that no other attempt of any part has, in this run or another one. Spark may run a part twice; one attempt counts."""

    @property
    def logger(self) -> logging.Logger:
        """Writes to the worker's stderr."""
        return logging.getLogger(f"millstream.{self.node}")

    @property
    def partition(self) -> int:
        """The number of the part, from 0."""
        context = _context()
        return int(context.partitionId()) if context else 0

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the result any more. A loop that waits for something asks this."""
        return bool(self.parent) and os.getppid() != self.parent


@dataclass(frozen=True)
class WriteTask(Task):
    """A part of an epoch that a sink writes."""

    query: str = ""
    epoch: int = 0
    """The number of the epoch."""
    digest: str = ""
    """Distinguishes epochs of the same number in two histories."""


def started(task: Any) -> Any:
    """The task in the process that does it."""
    return type(task)(**{**vars(task), "parent": os.getppid(), "attempt": secrets.randbits(62)})


def _context() -> Any:
    from pyspark import TaskContext

    return TaskContext.get()


def is_temporary(error: BaseException) -> bool:
    """By its form and not by its class: on a worker the class may be a pickled copy of the one that was raised."""
    return any(kind.__name__ == TemporaryFailure.__name__ for kind in type(error).__mro__)


class RevealedSecret:
    """A secret on a worker: it prints as `***`."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        """Hides the value."""
        return MASK
