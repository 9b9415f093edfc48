"""What does an epoch cost beyond a native sink?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python


def measure() -> list[Figure]:
    times = json.loads(cost_of(python("thousand_rows.py")).output)
    ours, theirs = median(times["ours"]) * 1000, median(times["theirs"]) * 1000
    return [
        Figure("an epoch of 1,000 rows, ours", ours, "ms"),
        Figure("… with Spark's native noop sink", theirs, "ms"),
        Figure("difference", ours - theirs, "ms", bar=15),
    ]
