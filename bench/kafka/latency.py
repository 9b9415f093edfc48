"""From Kafka to Kafka: how long until a reader of the target has a message?"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict

from bench.figures import Figure, cost_of, module

_EXACTLY, _LEAST, _REAL_TIME = "exactly_once", "at_least_once", "real_time"
_BARS = {"p50": 1.3, "p99": 1.2}
_REAL_TIME_BAR = 150


def measure() -> list[Figure]:
    runs: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    loads = []
    for line in cost_of(module("kafka.latency_run")).output.splitlines():
        found = json.loads(line)
        runs[found["case"]][found["way"]].append(sorted(found["ages"]))
        loads.append(found["load"])
    figures = [figure for case, ways in runs.items() for figure in _of_case(case, ways)]
    return [*figures, Figure("load of the machine, meanwhile", statistics.median(loads), "")]


def _of_case(case: str, ways: dict[str, list[list[float]]]) -> list[Figure]:
    rate, partitions, count = map(int, case.split("/"))
    what = f"{rate}/s, {partitions} partition{'s' if partitions > 1 else ''}"
    figures = []
    for part, bar in _BARS.items():
        if part == "p99" and count < 100:
            continue
        values = {way: _median_of_turns(turns, part) * 1000 for way, turns in ways.items()}
        figures += [Figure(f"{what}, {way.replace('_', ' ')}: {part}", value, "ms", _bar(way, part)) for way, value in values.items()]
        figures.append(Figure(f"… exactly once to at least once: {part}", values[_EXACTLY] / values[_LEAST], "", bar=bar))
    return figures


def _bar(way: str, part: str) -> float | None:
    return _REAL_TIME_BAR if way == _REAL_TIME and part == "p99" else None


def _median_of_turns(turns: list[list[float]], part: str) -> float:
    """The median of the turns' percentiles: one disturbed turn does not count."""
    share = {"p50": 0.5, "p99": 0.99}[part]
    return statistics.median(ages[int(len(ages) * share)] for ages in turns)
