"""Runs a pipeline and profiles its epochs. The session is the one that `millstream run` would have, with a longer memory of jobs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from bench.profiling.counters import EpochCounters, JvmCounters, PythonWorkers
from bench.profiling.driver import replaced, wrapped_driver
from bench.profiling.jobs import KEPT, read_jobs, read_worker_times
from bench.profiling.phases import ProfiledEpoch, profiled_epochs
from bench.profiling.sampler import Sampler
from bench.profiling.spans import EpochTrace, SpanRecorder
from bench.profiling.worker_clock import wrapped_workers
from millstream.engine.engine import SparkEngine, preload
from millstream.engine.sessions import open_with, session_options
from millstream.jvm.session import Session
from millstream.plan.cutting import cut
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology


@dataclass(frozen=True)
class Profile:
    """The measured epochs of a run, without the first ones of each query, and the sampled stacks."""

    epochs: list[ProfiledEpoch]
    stacks: Mapping[tuple[str, ...], float]
    """Stack, outermost frame first → seconds."""
    seen: int
    """Epochs with those that were left out."""


def open_for_profiling(topology: Topology) -> Session:
    queries = cut(topology)
    options = session_options(topology, queries, any(query.stateful for query in queries), None)
    return open_with(replace(options, conf={**options.conf, **KEPT}), lambda _: None, preload)


def profile(topology: Topology, session: Session, epochs: int, warm: int, *, samples: bool, stop: threading.Event | None = None) -> Profile:
    """Run the pipeline: to its end, or until each query has run this many epochs after its first ones."""
    from millstream.engine.run import query

    running: Any = query  # what it imports from others is replaced here

    assert session.jvm is not None
    spark, recorder, stop = session.spark, SpanRecorder(), stop or threading.Event()
    gateway: Any = spark.sparkContext._gateway
    counters = EpochCounters(JvmCounters(gateway._gateway_client), PythonWorkers(session.jvm.process.pid))
    progress: dict[tuple[str, int], Mapping[str, Any]] = {}
    done, names = dict[str, int](), [plan.name for plan in cut(topology) if not plan.bounded]

    def begin(trace: EpochTrace) -> None:
        if sampler is not None and done.get(trace.query, 0) >= warm:
            sampler.adopt(trace.query)
        counters.begin(trace)

    def finish(trace: EpochTrace) -> None:
        counters.end(trace)
        done[trace.query] = done.get(trace.query, 0) + 1
        if names and all(done.get(name, 0) >= warm + epochs for name in names):
            stop.set()

    count = running.count_epoch

    def observe(facts: Mapping[str, Any], scans: int, plan: Any, *rest: Any) -> None:
        progress[plan.name, facts["batchId"]] = facts
        count(facts, scans, plan, *rest)

    with ExitStack() as stack:
        sampler = stack.enter_context(Sampler(recorder, gateway)) if samples else None
        stack.enter_context(wrapped_driver(recorder, begin, finish))
        stack.enter_context(replaced(running, "count_epoch", observe))
        clock = stack.enter_context(wrapped_workers())
        SparkEngine(spark).run(topology, RunOptions(stop=stop, checked=True))
        timed = clock()
    found = profiled_epochs(recorder.epochs, progress, read_jobs(spark), [*read_worker_times(spark), *timed])
    return Profile(_without_first(found, warm), sampler.stacks if sampler else {}, len(found))


def _without_first(epochs: list[ProfiledEpoch], warm: int) -> list[ProfiledEpoch]:
    kept, seen = [], dict[str, int]()
    for epoch in epochs:
        seen[epoch.query] = seen.get(epoch.query, 0) + 1
        if seen[epoch.query] > warm:
            kept.append(epoch)
    return kept
