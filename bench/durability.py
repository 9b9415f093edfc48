"""What does a power cut cost: milliseconds per epoch of one row with `durability: fsync` and with `process`?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python


def measure() -> list[Figure]:
    told = json.loads(cost_of(python("one_row.py")).output.splitlines()[-1])
    times, waits = told["epochs"], told["waits"]
    found = []
    for plan in ("file to file", "totals by key"):
        safe, quick = (median(times[plan][durability]) * 1000 for durability in ("fsync", "process"))
        found += [
            Figure(f"{plan}, fsync", safe, "ms"),
            Figure(f"{plan}, process", quick, "ms"),
            Figure(f"{plan}, waiting for the disk", waits[plan]["seconds"] * 1000, "ms", note=f"{waits[plan]['calls']:.0f} calls"),
        ]
    return found
