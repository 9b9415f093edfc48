"""Incremental SQL: how long does an epoch take, small and large, and against computing the result anew?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python

_SMALL = {"one": "sums", "two": "sums over sums", "join": "join and sums", "five": "join, three aggregates, left join"}
_LARGE = {"two": "sums over sums", "join": "join and sums"}


def measure() -> list[Figure]:
    figures = []
    for query, name in _SMALL.items():
        epochs = json.loads(cost_of(python("sql_epochs.py", "small", query, "40")).output)["ours"][20:]
        parts = ", ".join(f"{part} {median([each[part] for each in epochs]) * 1000:.0f}" for part in ("bind", "compute", "log", "merge"))
        bar = 500 if query in {"two", "join"} else None
        figures.append(
            Figure(f"100 rows over 100,000: {name}", median([each["epoch"] for each in epochs]) * 1000, "ms", bar=bar, note=parts)
        )
    for query, name in _LARGE.items():
        times = json.loads(cost_of(python("sql_epochs.py", "large", query, "20")).output)
        epochs = [each["epoch"] for each in times["ours"][10:]]
        ours = sum(epochs) / len(epochs)  # and not their median: merging is part of the work
        figures.append(Figure(f"500,000 rows over 100,000 keys: {name}", 500 / ours, "k rows/s"))
        by_hand = {f"computed anew from {int(size) // 1_000_000} M rows": median(found) for size, found in times["theirs"].items()}
        merged = json.loads(cost_of(python("sql_epochs.py", "merge", query, "20")).output)["merged"][10:]
        if merged:
            by_hand["merged into a Delta table"] = sum(merged) / len(merged)
        for way, theirs in by_hand.items():
            figures.append(Figure(f"… {way}", 500 / theirs, "k rows/s", note=f"{theirs / ours:.1f} x"))
        last = list(by_hand)[3:]
        figures.append(
            Figure("throughput, ratio to the faster way, 50 M rows", min(by_hand[way] for way in last) / ours, "", bar=5, floor=True)
        )
    return figures
