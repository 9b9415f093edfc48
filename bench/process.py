"""How fast are process functions: 400,000 rows an epoch over 100,000 keys?

Spark's own function per key takes minutes at that size, so it gets a tenth of the rows (40,000, with 33,000 keys): rows per second are
compared across the two samples.
"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python

ROWS, SAMPLE = 400_000, 40_000


def measure() -> list[Figure]:
    times = json.loads(cost_of(python("process_rows.py")).output.splitlines()[-1])
    keyed, whole, theirs = ROWS / median(times["by key"]), ROWS / median(times["by bucket"]), SAMPLE / median(times["per key"])
    return [
        Figure("a function per key", keyed, "rows/s"),
        Figure("a function per bucket, on Arrow tables", whole, "rows/s", bar=100_000, floor=True),
        Figure("applyInPandasWithState, 40,000 rows", theirs, "rows/s"),
        Figure("per key, against applyInPandasWithState", keyed / theirs, "times", bar=20, floor=True),
        Figure("per bucket, against applyInPandasWithState", whole / theirs, "times", bar=20, floor=True),
    ]
