"""The phases of an epoch: what Spark's progress says, what the spans say inside of it, and the rest as `other`. They add up exactly.

Inside calls of the JVM, jobs come first, by the clock. What is left is given to the counters of rules and of code, up to its size: code
that tasks compile is counted during a job too. The remainder is `other calls of the JVM`: Py4J itself, physical planning, committing files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.profiling.jobs import Job, WorkerTime, covered
from bench.profiling.spans import EpochTrace, Span

WAITING, CALL, OTHER = "waiting for the trigger", "call of the epoch's function", "other"
JOBS, RULES, CODE, CALLS = "jobs", "analysis and optimising", "code generation", "other calls of the JVM"
KINDS = {"target": "target", "files": "checkpoint and ledger files", "fsync": "fsync", "python": "Python", "profiler": "profiler"}
SPARK = ("latestOffset", "getOffset", "walCommit", "getBatch", "queryPlanning")
PHASES = (WAITING, *SPARK, CALL, JOBS, RULES, CODE, CALLS, *KINDS.values(), "commitOffsets", OTHER)
"""In the order of the table. Phases that Spark adds later come before `other`."""
_WHOLE = ("triggerExecution", "addBatch")


@dataclass(frozen=True)
class ProfiledEpoch:
    """One epoch, in milliseconds, from the end of the one before to its own end."""

    query: str
    number: int
    rows: int
    duration: float
    phases: Mapping[str, float]
    steps: Mapping[str, Mapping[str, float]]
    """Step of the epoch's function → phase → milliseconds."""
    counts: Mapping[str, int]
    workers: Mapping[str, float] = field(default_factory=dict)
    """Inside the tasks of its jobs: added up over tasks, which run beside each other."""


def profiled_epochs(
    traces: Iterable[EpochTrace],
    progress: Mapping[tuple[str, int], Mapping[str, Any]],
    jobs: Sequence[Job],
    worker_times: Sequence[WorkerTime] = (),
) -> list[ProfiledEpoch]:
    """The epochs that were traced and that Spark has reported, in order."""
    found, ends = [], dict[str, float]()
    for trace in sorted(traces, key=lambda each: (each.query, each.number)):
        facts = progress.get((trace.query, trace.number))
        if facts is None:
            continue
        began = datetime.fromisoformat(facts["timestamp"]).timestamp() * 1000
        waited = max(0.0, began - ends.get(trace.query, began))
        ends[trace.query] = began + facts["durationMs"]["triggerExecution"]
        found.append(_profiled(trace, facts, waited, jobs, worker_times))
    return found


def _profiled(
    trace: EpochTrace, facts: Mapping[str, Any], waited: float, jobs: Sequence[Job], worker_times: Sequence[WorkerTime]
) -> ProfiledEpoch:
    own = [job for job in jobs if job.start <= trace.end and job.end >= trace.start and job.group in ("", facts.get("runId", ""))]
    steps = _steps(trace.spans, own)
    inside = _summed(steps.values())
    counted = _share_out(inside, trace.counters)
    durations = {name: float(ms) for name, ms in facts["durationMs"].items()}
    spark = {name: ms for name, ms in durations.items() if name not in _WHOLE}
    called = durations.get("addBatch", 0.0) - sum(inside.values())
    phases = {WAITING: waited, **spark, CALL: called, **counted}
    duration = waited + durations["triggerExecution"]
    phases[OTHER] = duration - sum(phases.values())
    return ProfiledEpoch(
        trace.query, trace.number, int(facts["numInputRows"]), duration, phases, steps, _counts(trace, own), _workers(trace, worker_times)
    )


def _steps(spans: Sequence[Span], jobs: Sequence[Job]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for span in spans:
        step = found.setdefault(span.step or "between the steps", {})
        if span.kind == "jvm":
            running = min(span.own, covered(span.start, span.end, jobs))
            _add(step, JOBS, running)
            _add(step, CALLS, span.own - running)
        else:
            _add(step, KINDS[span.kind], span.own)
    return found


def _share_out(inside: Mapping[str, float], counters: Mapping[str, float]) -> dict[str, float]:
    """Give the counters their part of the calls."""
    left, parts = inside.get(CALLS, 0.0), dict[str, float]()
    for name, keys in ((RULES, ("rules",)), (CODE, ("generating", "compiling"))):
        parts[name] = min(left, sum(counters.get(key, 0.0) for key in keys) * 1000)
        left -= parts[name]
    return {**inside, **parts, CALLS: left}


def _counts(trace: EpochTrace, jobs: Sequence[Job]) -> dict[str, int]:
    calls = {kind: sum(1 for span in trace.spans if span.kind == kind and span.outermost) for kind in ("jvm", "target", "files", "fsync")}
    return {
        "jobs": len(jobs),
        "stages": sum(job.stages for job in jobs),
        "tasks": sum(job.tasks for job in jobs),
        "calls of the JVM": calls["jvm"],
        "round trips to the target": calls["target"],
        "operations on files": calls["files"],
        "fsync": calls["fsync"],
        "new Python workers": trace.new_workers,
    }


def _workers(trace: EpochTrace, times: Sequence[WorkerTime]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in times:
        if trace.start - 0.001 <= each.at <= trace.end:
            found[each.name] = found.get(each.name, 0.0) + each.ms
    return found


def _summed(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        for name, ms in part.items():
            found[name] = found.get(name, 0.0) + ms
    return found


def _add(step: dict[str, float], phase: str, seconds: float) -> None:
    step[phase] = step.get(phase, 0.0) + seconds * 1000
