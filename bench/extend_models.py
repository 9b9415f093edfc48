"""What does scoring with a model cost beyond the runtime itself?"""

from __future__ import annotations

import json

from bench.figures import Figure, cost_of, median, module

_BAR = 0.8


def measure() -> list[Figure]:
    found: dict[str, dict[str, list[float]]] = json.loads(cost_of(module("extend_models_run")).output.splitlines()[-1])
    figures = []
    for work, times in found.items():
        figures.append(Figure(f"model {work}, 1 M rows of 8 numbers", median(times["ours"]), "s"))
        ratio = median([theirs / ours for ours, theirs in zip(times["ours"], times["theirs"], strict=True)])
        figures.append(Figure("… speed, by hand = 1", ratio, "", bar=_BAR, floor=True))
    return figures
