"""CPU for two million JSON events in windows, against Bytewax and Pathway on the same files.

The peers are installed into an environment of their own under the user's cache, the first time.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bench.figures import ROOT, Cost, Figure, cost_of, environment, millstream, python

ROWS = 2_000_000
PIPELINE = """
sources:
  events:
    type: file
    path: in
    format: json
    schema: {key: int64, value: int64, at: int64}
    mode: {type: bounded}
    event_time: {column: at, unit: ms, watermark: 1s}
transforms:
  sums: {type: window, from: events, key_by: [key], window: {type: tumbling, size: 10s}, aggregate: {total: sum(value)}}
sinks:
  out: {type: file, from: sums, path: out, format: json}
settings: {profile: long}
"""


def measure() -> list[Figure]:
    peers = environment("bench-peers", "bytewax==0.21.1", "pathway==0.33.0")
    scripts = ROOT / "bench" / "scripts"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost_of(python("peer_rows.py", str(folder / "in")))
        (folder / "p.yaml").write_text(PIPELINE)
        environ = {"BENCH_FOLDER": name, "PYTHONPATH": str(scripts)}
        ours = cost_of(millstream("run", "p.yaml"), cwd=folder)
        bytewax = cost_of([str(peers), "-m", "bytewax.run", "peer_bytewax:flow"], cwd=folder, **environ)
        pathway = cost_of([str(peers), str(scripts / "peer_pathway.py")], cwd=folder, **environ)
        _same_totals(folder)
    return [*_figures("ours", ours, ours), *_figures("Bytewax", bytewax, ours), *_figures("Pathway", pathway, ours)]


def _figures(name: str, cost: Cost, ours: Cost) -> list[Figure]:
    figures = [
        Figure(f"{name}: CPU per million rows", cost.cpu / ROWS * 1e6, "s"),
        Figure(f"{name}: wall, start-up included", cost.wall, "s"),
    ]
    return figures if cost is ours else [*figures, Figure(f"… CPU, ours / {name}", ours.cpu / cost.cpu, "")]


def _same_totals(folder: Path) -> None:
    """Nobody is compared who computes something else."""
    lines = [line for file in (folder / "out").rglob("*.json") for line in file.read_text().splitlines()]
    ours = sum(json.loads(line)["total"] for line in lines if "total" in line)
    bytewax = sum(json.loads(line)[2] for line in (folder / "bytewax.out").read_text().splitlines())
    pathway = [json.loads(line) for line in (folder / "pathway.out").read_text().splitlines()]
    if not ours == bytewax == sum(row["total"] * row["diff"] for row in pathway):
        raise RuntimeError(f"the totals differ: ours {ours}, Bytewax {bytewax}")
