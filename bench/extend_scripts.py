"""How fast are scripts? Rows of eight fields with three derived ones, in each engine, and in QuickJS with a call per row."""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, module

_BARS = {"quickjs": 40_000.0, "deno": 150_000.0}
_TIMES = 10.0


def measure() -> list[Figure]:
    found: dict[str, list[float]] = json.loads(cost_of(module("extend_scripts_run")).output.splitlines()[-1])
    figures = [Figure(f"scripts: {name}", median(found[name]), "rows/s per core", bar=bar, floor=True) for name, bar in _BARS.items()]
    ratio = median(found["quickjs"]) / median(found["a call per row"])
    return [*figures, Figure("… quickjs, times as fast as a call per row", ratio, "", bar=_TIMES, floor=True)]
