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
        ours, theirs = median([each["epoch"] for each in times["ours"][10:]]), median(times["theirs"][10:])
        figures += [
            Figure(f"500,000 rows over 100,000 keys: {name}", 500 / ours, "k rows/s"),
            Figure("… computed anew from a table, epochs 10 to 19", 500 / theirs, "k rows/s"),
            Figure("throughput, ratio", theirs / ours, "", bar=5, floor=True),
        ]
    return figures
