"""How fast is the generator, with the fields that people use?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, python


def measure() -> list[Figure]:
    times = json.loads(cost_of(python("generate.py")).output)
    return [Figure("rows generated: sequence, choice, uniform, timestamp", 10 / median(times), "M rows/s", bar=3, floor=True)]
