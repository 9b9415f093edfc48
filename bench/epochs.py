"""What does an epoch cost beyond a native sink, and what of it is fsync?"""

from __future__ import annotations

import json
import os

from bench.figures import Figure, cost_of, median, python

_NATIVE = {"nothing": "Spark's noop sink", "file": "Spark's file sink"}


def measure() -> list[Figure]:
    told = json.loads(cost_of(python("thousand_rows.py")).output.splitlines()[-1])
    found: list[Figure] = []
    for sink, native in _NATIVE.items():
        theirs, quick, safe = (median(told["epochs"][sink][way]) * 1000 for way in ("theirs", "process", "fsync"))
        found += [
            Figure(f"an epoch of 1,000 rows, {native}", theirs, "ms"),
            Figure(f"… ours, to {sink}, without fsync", quick, "ms"),
            Figure("… difference", quick - theirs, "ms", bar=8, note=f"load {os.getloadavg()[0]:.1f}"),
            Figure("… with fsync, in addition", safe - quick, "ms"),
            Figure("… waiting in fsync", median(told["waits"][sink]) * 1000, "ms"),
        ]
    return found
