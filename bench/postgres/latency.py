"""Epochs of 1, 100 and 1,000 rows upserted into Postgres: how long do stage and commit take?

Small epochs come with the merge; beside them, in the same process and in turns, the same epochs through staging tables, as large ones go.
The server is on the same cores. The first epochs of each run are not counted: the JVM compiles.
"""

from __future__ import annotations

import json
import os
import statistics

from bench.figures import Figure, cost_of, module

SIZES, BAR = (1, 100, 1000), 60


def measure() -> list[Figure]:
    before = os.getloadavg()[0]
    found: dict[str, list[float]] = json.loads(cost_of(module("postgres.latency_run", *map(str, SIZES))).output.splitlines()[-1])
    figures = []
    for size in SIZES:
        for way, label in (("small", "with the merge"), ("large", "through staging tables")):
            times = sorted(seconds * 1000 for seconds in found[f"{way} {size}"])
            bar = BAR if (way, size) == ("small", 100) else None
            figures += [
                Figure(f"{size:,} rows, {label}: p50", statistics.median(times), "ms", bar=bar),
                Figure("… p99", times[int(len(times) * 0.99)], "ms"),
            ]
    return [*figures, Figure("load of the machine before", before, ""), Figure("… and after", os.getloadavg()[0], "")]
