"""How long does a bounded pipeline of ten rows take, from the command to its end?"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from bench.figures import Cost, Figure, cost_of, median, millstream, python

PIPELINE = """
sources: {rows: {type: file, path: in, format: json, schema: {a: int32, b: string}, mode: {type: bounded}}}
transforms: {some: {type: sql, sql: "SELECT a, b FROM rows WHERE a > 0"}}
sinks: {out: {type: memory, from: some}}
"""


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "in/a.json").write_text('{"a":1,"b":"x"}\n' * 10)
        (folder / "p.yaml").write_text(PIPELINE)
        _ours(folder)
        cost_of([*millstream("doctor"), "--warm"])
        pairs = [(_ours(folder), _theirs(folder)) for _ in range(5)]
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    times = json.loads(ours[-1].output)["times"]
    spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in times.items())
    return [
        Figure("wall time, ours", median([cost.wall for cost in ours]), "s", note=f"({spent})"),
        Figure("wall time, hand-written", median([cost.wall for cost in theirs]), "s"),
        Figure("wall time, ratio", median([a.wall / b.wall for a, b in pairs]), "", bar=0.6),
        Figure("CPU, ours", median([cost.cpu for cost in ours]), "s"),
        Figure("CPU, hand-written", median([cost.cpu for cost in theirs]), "s"),
        Figure("CPU, ratio", median([a.cpu / b.cpu for a, b in pairs]), "", bar=0.5),
    ]


def _ours(folder: Path) -> Cost:
    shutil.rmtree(folder / ".millstream", ignore_errors=True)
    return cost_of(millstream("run", "p.yaml", "--format", "json"), folder)


def _theirs(folder: Path) -> Cost:
    cost = cost_of(python("ten_rows.py"), folder)
    return Cost(cost.wall - float(cost.output), cost.cpu, "")
