"""Counters outside of this process, read when an epoch's function begins and ends: seconds that Spark has spent in the rules of its
analyser and optimiser, in generating code and in compiling it; and the Python workers below the JVM.

Spark's counters are global. With several queries at once, an epoch also gets what the others did meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.profiling.spans import EpochTrace

_SQL = "org.apache.spark.sql"
_DAEMON = b"pyspark.daemon"
_SEARCH = 10
"""Every how many epochs Spark's Python daemon is looked for while there is none: a JVM has a hundred threads that may have started it."""


class JvmCounters:
    """Reads Spark's counters: one call of the JVM each."""

    def __init__(self, client: Any) -> None:
        from py4j.java_gateway import JavaClass

        # members are looked up once: each lookup is a call too
        rules = JavaClass(f"{_SQL}.catalyst.rules.RuleExecutor", client).getCurrentMetrics
        compiling = JavaClass(f"{_SQL}.catalyst.expressions.codegen.CodeGenerator", client).compileTime
        generating = JavaClass(f"{_SQL}.execution.WholeStageCodegenExec", client).codeGenTime
        self._counters: dict[str, Callable[[], int]] = {
            "rules": lambda: int(rules().time()),
            "compiling": lambda: int(compiling()),
            "generating": lambda: int(generating()),
        }

    def read(self) -> dict[str, float]:
        """Seconds since the JVM started."""
        return {name: read() / 1e9 for name, read in self._counters.items()}


class PythonWorkers:
    """The Python processes that Spark's daemon has started."""

    def __init__(self, jvm: int) -> None:
        self._jvm, self._daemons = jvm, set[int]()
        self._known: set[int] = set()
        self._calls = 0

    def count_new(self) -> int:
        """Workers that were not there at the last call."""
        self._calls += 1
        if not self._daemons and self._calls % _SEARCH == 1:
            self._daemons = {pid for pid in _children(self._jvm) if _DAEMON in _command(pid)}
        found = {pid for daemon in self._daemons for pid in _children(daemon)}
        new, self._known = found - self._known, found
        return len(new)


class EpochCounters:
    """The counters of each epoch, from its beginning to its end."""

    def __init__(self, counters: JvmCounters, workers: PythonWorkers) -> None:
        self._counters, self._workers = counters, workers

    def begin(self, trace: EpochTrace) -> None:
        trace.counters = self._counters.read()

    def end(self, trace: EpochTrace) -> None:
        trace.counters = {name: value - trace.counters[name] for name, value in self._counters.read().items()}
        trace.new_workers = self._workers.count_new()


def _children(pid: int) -> set[int]:
    """Processes that the threads of a process have started; empty where the system does not tell."""
    found: set[int] = set()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found |= set(map(int, (task / "children").read_text().split()))
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
