"""How does state grow, with 1 M and 5 M keys? Plots: `bench/plots/`."""

from __future__ import annotations

import json

from bench.figures import ROOT, Figure, cost_of, python
from bench.plots import Series, draw

_PANELS = {"seconds": "seconds per epoch of 500,000 rows", "process_mb": "memory of Python and JVM, MB", "checkpoint_mb": "checkpoint, MB"}

_AXIS = "epoch: the first half of each line brings new keys, the second meets them again"


def measure() -> list[Figure]:
    runs = {keys: json.loads(cost_of(python("state_growth.py", str(keys))).output) for keys in (1_000_000, 5_000_000)}
    for name, title in _PANELS.items():
        lines = [Series(f"{keys // 1_000_000} M keys", [(p["epoch"], p[name]) for p in points]) for keys, points in runs.items()]
        (ROOT / "bench" / "plots" / f"state_{name}.svg").write_text(draw(title, _AXIS, lines))
    figures = []
    for keys, points in runs.items():
        last, late = points[-1], sorted(point["seconds"] for point in points[-5:])
        figures += [
            Figure(f"{keys // 1_000_000} M keys: an epoch of 500,000 rows at the end", late[2], "s"),
            Figure("… memory of Python and JVM", last["process_mb"], "MB"),
            Figure("… checkpoint", last["checkpoint_mb"], "MB"),
        ]
    return figures
