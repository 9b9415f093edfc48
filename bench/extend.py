"""What does extending cost? Functions of SQL, models, scripts and plugins, against what can be written by hand."""

from __future__ import annotations

import json

from bench import extend_models, extend_scripts
from bench.figures import Figure, cost_of, median, module

_PLUGIN_BAR = 1.1
_BAR, _BARRED = 5.0, ("u256: sum of two", "u256: comparison")


def measure() -> list[Figure]:
    return [*_functions(), *extend_models.measure(), *extend_scripts.measure(), *_plugins()]


def _functions() -> list[Figure]:
    """256-bit integers and hashes."""
    found: dict[str, dict[str, list[float]]] = json.loads(cost_of(module("extend_run")).output.splitlines()[-1])
    figures = []
    for work, times in found.items():
        figures.append(Figure(f"{work}, 1 M rows", median(times["ours"]), "s"))
        ratio = median([theirs / ours for ours, theirs in zip(times["ours"], times["theirs"], strict=True)])
        bar = _BAR if work in _BARRED else None
        figures.append(Figure("… times as fast as Python", ratio, "", bar=bar, floor=True))
    return figures


def _plugins() -> list[Figure]:
    found: dict[str, dict[str, list[float]]] = json.loads(cost_of(module("extend_plugins")).output.splitlines()[-1])
    figures = []
    for work, times in found.items():
        figures.append(Figure(f"plugin, {work}", median(times["ours"]), "s"))
        ratio = median([ours / theirs for ours, theirs in zip(times["ours"], times["theirs"], strict=True)])
        figures.append(Figure("… compared with `mapInArrow` by hand", ratio, "", bar=_PLUGIN_BAR))
    return figures
