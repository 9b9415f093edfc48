"""What does it cost to be looked at? 20 M rows in 10 epochs, and epochs of 1,000 rows, in turns with and without readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, cost_of, median, millstream, module

_LABELS = {
    "facts": "facts alone",
    "scraped": "metrics scraped each second",
    "inspected": "a page open on one node",
    "traced": "1 % of the records traced",
}
_BARS = {"facts": 1.01, "scraped": 1.02, "inspected": 1.03, "traced": 1.02}
_TURNS = 5
_WATCHED = """
sources: {g: {type: generator, rows_per_second: 1000, fields: {id: {type: sequence}}}}
transforms: {some: {type: filter, from: g, where: id % 3 = 0}}
sinks: {out: {type: blackhole, from: some}}
"""


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
    return [*figures, *_first_rows()]


def _first_rows() -> list[Figure]:
    """From the command to the first row: of a preview, which starts a JVM, and of a tap on a pipeline that runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.yaml").write_text(_WATCHED)
        preview = [_time_of(folder, millstream("preview", "p.yaml", "some", "--rows", "5", "--format", "json")) for _ in range(_TURNS)]
        run = subprocess.Popen(millstream("run", "p.yaml", "--quiet"), cwd=folder, stdout=sys.stderr)
        watch = millstream("tap", "p.yaml", "some", "--limit", "1", "--format", "json")
        try:
            while subprocess.run(watch, cwd=folder, capture_output=True, check=False).returncode:
                time.sleep(0.5)
            tap = [_time_of(folder, watch) for _ in range(_TURNS)]
        finally:
            run.terminate()
            run.wait()
    return [Figure("`preview`: first row after", median(preview), "s"), Figure("`tap`: first row after", median(tap), "s")]


def _time_of(folder: Path, command: list[str]) -> float:
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    taken = time.perf_counter() - started
    process.communicate()
    if not line:
        raise RuntimeError(f"{' '.join(command)} printed no row")
    return taken
