"""Keyed sums and windows of event time: as fast as Structured Streaming written by hand?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python

_NAMES = {
    "keyed": "keyed sum, 1,000 keys",
    "tumbling": "tumbling window and key",
    "sliding": "sliding window and key",
    "session": "sessions",
}


def measure() -> list[Figure]:
    figures = []
    for kind, name in _NAMES.items():
        times = json.loads(cost_of(python("stateful.py", kind)).output)
        ours, theirs = median(times["ours"]), median(times["theirs"])
        bar = 9.4 if kind == "keyed" else None
        figures += [
            Figure(f"{name}, ours", times["rows"] / ours / 1e6, "M rows/s", bar=bar, floor=True),
            Figure("… hand-written", times["rows"] / theirs / 1e6, "M rows/s"),
            Figure("throughput, ratio", theirs / ours, "", bar=0.95, floor=True),
        ]
    return figures
