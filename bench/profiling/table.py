"""What a profile says, as text or as JSON: the phases of an epoch, the steps of its function by sink, and counts.

Means add up to the mean duration of an epoch; medians do not, and say what a usual epoch has.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.profiling.phases import CALLS, JOBS, KINDS, OTHER, PHASES, ProfiledEpoch

_COLUMNS = {JOBS: "jobs", CALLS: "JVM", "target": "target", "checkpoint and ledger files": "files", "fsync": "fsync", "Python": "Python"}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; the median is the middle of two."""
    ordered = sorted(values)
    return statistics.median(ordered) if share == 0.5 else ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def statistics_of(values: Sequence[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p90": percentile(values, 0.9), "mean": statistics.fmean(values)}


def names_of(epochs: Iterable[ProfiledEpoch]) -> list[str]:
    """The phases that any of the epochs has, in order."""
    found = {name for epoch in epochs for name in epoch.phases}
    known = [name for name in PHASES if name in found and name != OTHER]
    return [*known, *sorted(found - {*PHASES}), OTHER]


def as_dict(epochs: Sequence[ProfiledEpoch]) -> dict[str, Any]:
    """One query: milliseconds by phase, by step and by what happens inside its tasks; and counts per epoch."""
    steps = list(dict.fromkeys(step for epoch in epochs for step in epoch.steps))
    workers = sorted({name for epoch in epochs for name in epoch.workers})
    return {
        "epochs": len(epochs),
        "rows": statistics.fmean(epoch.rows for epoch in epochs),
        "duration": statistics_of([epoch.duration for epoch in epochs]),
        "phases": {name: statistics_of([epoch.phases.get(name, 0.0) for epoch in epochs]) for name in names_of(epochs)},
        "steps": {step: _step(epochs, step) for step in steps},
        "tasks": {name: statistics_of([epoch.workers.get(name, 0.0) for epoch in epochs]) for name in workers},
        "counts": {name: statistics.fmean(epoch.counts[name] for epoch in epochs) for name in epochs[0].counts},
    }


def _step(epochs: Sequence[ProfiledEpoch], step: str) -> dict[str, Any]:
    parts = [epoch.steps.get(step, {}) for epoch in epochs]
    means = {name: statistics.fmean(part.get(name, 0.0) for part in parts) for name in (JOBS, CALLS, *KINDS.values())}
    return {**statistics_of([sum(part.values()) for part in parts]), "of which": means}


def as_text(query: str, found: Mapping[str, Any]) -> str:
    """The tables of one query."""
    whole = found["duration"]["mean"] or 1.0
    head = f"query {query}: {found['epochs']} epochs of {found['rows']:,.0f} rows; milliseconds; the means add up"
    lines = [head, "", f"  {'phase':<34}{'p50':>9}{'p90':>9}{'mean':>9}{'share':>8}"]
    lines += [f"  {name:<34}{_three(row)}{row['mean'] / whole:>8.1%}" for name, row in found["phases"].items() if _counts(row)]
    lines += [f"  {'an epoch, with the wait before it':<34}{_three(found['duration'])}{1:>8.1%}", ""]
    columns = "".join(f"{name:>9}" for name in _COLUMNS.values())
    lines += [f"  {'step of the function (its means)':<34}{'p50':>9}{'p90':>9}{'mean':>9}{columns}"]
    for name, row in sorted(found["steps"].items(), key=lambda item: -float(item[1]["mean"])):
        parts = "".join(f"{row['of which'][part]:>9.1f}" for part in _COLUMNS)
        lines.append(f"  {name:<34}{_three(row)}{parts}")
    if found["tasks"]:
        lines += ["", f"  {'inside tasks, added up over them':<34}{'p50':>9}{'p90':>9}{'mean':>9}"]
        lines += [f"  {name:<34}{_three(row)}" for name, row in found["tasks"].items()]
    counts = ", ".join(f"{value:.4g} {name}" for name, value in found["counts"].items() if value)
    return "\n".join([*lines, "", f"  per epoch: {counts}"])


def _three(row: Mapping[str, float]) -> str:
    return "".join(f"{row[name]:>9.1f}" for name in ("p50", "p90", "mean"))


def _counts(row: Mapping[str, float]) -> bool:
    return any(abs(value) >= 0.05 for value in row.values())


def matrix(
    cases: Mapping[str, Mapping[str, Any]], order: Callable[[str], int] = lambda name: PHASES.index(name) if name in PHASES else 99
) -> str:
    """Phase by case: the medians."""
    phases = sorted({name for found in cases.values() for name, row in found["phases"].items() if _counts(row)}, key=order)
    width = max(11, *(len(name) + 2 for name in cases))
    lines = [f"{'p50, ms':<32}" + "".join(f"{name:>{width}}" for name in cases)]
    for phase in phases:
        lines.append(f"{phase:<32}" + "".join(f"{_p50(found, phase):>{width}}" for found in cases.values()))
    lines.append(f"{'an epoch':<32}" + "".join(f"{found['duration']['p50']:>{width}.1f}" for found in cases.values()))
    for name in next(iter(cases.values()))["counts"]:
        lines.append(f"{'number: ' + name:<32}" + "".join(f"{found['counts'][name]:>{width}.1f}" for found in cases.values()))
    return "\n".join(lines)


def _p50(found: Mapping[str, Any], phase: str) -> str:
    row = found["phases"].get(phase)
    return f"{row['p50']:.1f}" if row else "-"
