"""Samples the threads that run epochs, every few milliseconds. Where Python waits for the JVM, the stack continues with that of the Java
thread that works for it: PySpark gives every Python thread a Java thread of its own. Here that is the thread of Spark's query, so the
stacks also show what it does outside of the epoch's function.

A sample of a Java stack costs two calls of the JVM in the sampler's thread. So samples are only taken when someone asks for the graph, and
the table of the same run is a little higher.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from bench.profiling.spans import SpanRecorder

_PAUSE = 0.003
_MOST = 80
_HIDDEN = ("jdk.internal.", "java.lang.reflect.", "scala.", "py4j.", "java.util.stream.", "sun.")
_WRAPPERS = (
    *("LazyTry.", "Utils$.doTry", "SQLExecution$.with", "ArtifactManager.with", "JobArtifactSet$", "CurrentOrigin$", "TreeNode."),
    *("AnalysisHelper.", "LogicalPlan.", "QueryExecution$.with", "SparkSession.with", "TriggerExecutor.", "MultiBatchExecutor."),
)
"""Frames that only pass a function on."""
_ENTRY = "py4j.reflection.ReflectionEngine.invoke"
_PY4J, _OUTSIDE = "py4j", "outside of the epoch's function"
Stack = tuple[str, ...]


class Sampler:
    """Collects stacks while the `with` block runs."""

    def __init__(self, recorder: SpanRecorder, gateway: Any) -> None:
        self.stacks: dict[Stack, float] = {}
        self._recorder, self._gateway = recorder, gateway
        self._java: dict[int, tuple[str, Any]] = {}
        """Python thread → the query, and the id of the Java thread."""
        self._dump = gateway.jvm.org.apache.spark.util.Utils.getThreadDumpForThread
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(5)

    def adopt(self, query: str) -> None:
        """Called in a thread that runs an epoch: remember the Java thread that answers its calls."""
        key = threading.get_ident()
        if key not in self._java:
            self._java[key] = query, self._gateway.jvm.java.lang.Thread.currentThread().getId()

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._stop.wait(_PAUSE):
            now = time.perf_counter()
            frames: Mapping[int, FrameType] = sys._current_frames()
            for thread, (query, java) in list(self._java.items()):
                stack = python_stack(frames.get(thread)) if thread in self._recorder.running else (_OUTSIDE,)
                stack = stack or (_OUTSIDE,)
                if stack[-1] in (_PY4J, _OUTSIDE):
                    with suppress(Exception):  # the JVM may be gone
                        stack = (*stack, *self._java_stack(java))
                key = (query, *stack)
                self.stacks[key] = self.stacks.get(key, 0.0) + now - last
            last = now

    def _java_stack(self, thread: Any) -> Stack:
        return java_stack(str(self._dump(thread).toString()))


def python_stack(frame: FrameType | None) -> Stack:
    """Frames from the epoch's function inwards, outermost first. Py4J is one frame: what matters is who calls it."""
    found: list[str] = []
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        found.append(f"{_module(path)}:{name}")
        if name == "__call__" and path.name == "loop.py":
            break
        frame = frame.f_back
    else:
        return ()
    stack = [each for each in reversed(found) if not each.startswith("bench/")]
    first = next((index for index, each in enumerate(stack) if each.startswith("py4j/")), None)
    return tuple(stack if first is None else [*stack[:first], _PY4J])[:_MOST]


def java_stack(text: str) -> Stack:
    """Frames from the call by Py4J inwards, outermost first, as `Class.method`."""
    found: list[str] = []
    for line in text.splitlines():
        if not line.startswith("\tat "):  # locks, and the thread's name
            continue
        name = line[4:].partition("(")[0].rpartition("/")[2]
        if name.startswith(_ENTRY):
            break
        package, _, method = name.rpartition(".")
        short = f"{package.rpartition('.')[2]}.{method.removesuffix('$lzycompute')}"
        if not (name.startswith(_HIDDEN) or "$anonfun" in name or "$$Lambda" in line or short.startswith(_WRAPPERS)):
            found.append(short)
    kept = [each for index, each in enumerate(found) if index == 0 or each != found[index - 1]]
    return tuple(reversed(kept))[:_MOST]


def _module(path: Path) -> str:
    """The path from its package on, such as `millstream/engine/epoch/loop.py`."""
    for index, part in enumerate(path.parts):
        if part in {"millstream", "pyspark", "py4j", "psycopg", "bench"} and "src" not in path.parts[index + 1 :]:
            return "/".join(path.parts[index:])
    return path.name
