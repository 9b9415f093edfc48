"""What does it cost to be looked at? 20 M rows in 10 epochs, and epochs of 1,000 rows, in turns with and without readers."""

from __future__ import annotations

import json
import os

from bench.figures import Figure, cost_of, median, module

_LABELS = {
    "facts": "facts alone",
    "scraped": "metrics scraped each second",
    "inspected": "a page open on one node",
    "traced": "1 % of the records traced",
}
_BARS = {"facts": 1.01, "scraped": 1.02, "inspected": 1.03, "traced": 1.02}


def measure() -> list[Figure]:
    found: dict[str, dict[str, list[float]]] = json.loads(cost_of(module("observe_run")).output.splitlines()[-1])
    figures = []
    for work, times in found.items():
        figures.append(
            Figure(f"{work}: nobody looks, and nothing is published", median(times["off"]), "s", note=f"load {os.getloadavg()[0]:.1f}")
        )
        for way, label in _LABELS.items():
            pairs = [mine / off for mine, off in zip(times[way], times["off"], strict=True)]
            figures.append(Figure(f"… {label}: ratio", median(pairs), "", bar=_BARS[way]))
    return figures
