"""1 M rows looked up among 100 k entries of a Postgres table: at least ten times as fast as one query per row?"""

from __future__ import annotations

import json
import sys

from bench.figures import Figure, cost_of, median, module

_ROWS, _ENTRIES, _SAMPLE = 1_000_000, 100_000, 20_000


def measure() -> list[Figure]:
    times = json.loads(cost_of(module("postgres.lookups_run", str(_ROWS), str(_ENTRIES), str(_SAMPLE))).output.splitlines()[-1])
    print(f"  {times}", file=sys.stderr)
    single = _SAMPLE / median(times["one per row"])
    speeds = {name: _ROWS / median(times[name]) for name in ("get", "get, cached", "check", "join", "lookup", "lookup, cached")}
    figures = [Figure(f"{name}", speed / 1000, "k rows/s") for name, speed in speeds.items()]
    return [
        *figures,
        Figure("the same rows without a lookup", _ROWS / median(times["nothing"]) / 1000, "k rows/s"),
        Figure(f"one query per row, {_SAMPLE:,} rows", single / 1000, "k rows/s"),
        Figure("get, against one query per row", speeds["get"] / single, "times", bar=10, floor=True),
        Figure("get with a cache, against one query per row", speeds["get, cached"] / single, "times", bar=10, floor=True),
        Figure("lookup, against one query per row", speeds["lookup"] / single, "times", bar=10, floor=True),
    ]
