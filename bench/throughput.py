"""20 M generated rows through filter and project: as fast as Structured Streaming written by hand?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python


def measure() -> list[Figure]:
    one = json.loads(cost_of(python("twenty_million.py", "blackhole")).output)
    two = json.loads(cost_of(python("twenty_million.py", "parquet")).output)
    return [
        Figure("20 M rows to blackhole, ours", 20 / median(one["ours"]), "M rows/s"),
        Figure("20 M rows to noop, hand-written", 20 / median(one["theirs"]), "M rows/s"),
        Figure("time, ratio", median(one["ours"]) / median(one["theirs"]), "", bar=1.05),
        Figure("10 M rows to two Parquet sinks, ours", median(two["ours"]), "s"),
        Figure("… persisted by hand", median(two["persisted"]), "s"),
        Figure("… recomputed by hand", median(two["recomputed"]), "s"),
        Figure(
            "time, ratio to the better of the two",
            median(two["ours"]) / min(median(two["persisted"]), median(two["recomputed"])),
            "",
            bar=1.05,
        ),
    ]
