"""Do epochs stay as short as they were? Plot: `bench/plots/`.

One-row epochs into files, by Spark's progress. `BENCH_EPOCHS` is their number (10,000).
"""

from __future__ import annotations

import json
import os

from bench.figures import ROOT, Figure, cost_of, median, python
from bench.plots import Series, draw

_WINDOW = 100
"""Epochs of one median."""


def measure() -> list[Figure]:
    epochs = int(os.environ.get("BENCH_EPOCHS", "10000"))
    if epochs < 3 * _WINDOW:
        raise ValueError(f"BENCH_EPOCHS must be at least {3 * _WINDOW}")
    told = json.loads(cost_of(python("flat_epochs.py", str(epochs))).output.splitlines()[-1])
    times = [float(epoch["triggerExecution"]) for epoch in told["epochs"]]
    medians = [(float(first), median(times[first : first + _WINDOW])) for first in range(0, len(times) - _WINDOW + 1, _WINDOW)]
    title = f"ms per epoch of one row, medians of {_WINDOW}; {len(times):,} epochs"
    (ROOT / "bench" / "plots" / "flat_epochs.svg").write_text(draw(title, "epoch", [Series("file sink", medians)]))
    early, late = median(times[_WINDOW : 2 * _WINDOW]), median(times[-_WINDOW:])
    settled = median([value for _, value in medians[len(medians) // 2 : len(medians) // 2 + 3]])
    return [
        Figure("an epoch of one row, epochs 100 to 200", early, "ms"),
        Figure("… the last hundred", late, "ms", note=f"of {len(times):,} epochs; load {os.getloadavg()[0]:.1f}"),
        Figure("last / early", late / early, "", bar=1.1),
        Figure("last / middle of the run, where the JVM is warm", late / settled, ""),
        *(Figure(f"files in {name} at the end", count, "") for name, count in told["files"].items()),
    ]
