"""CPU for two million messages from Kafka, filtered and counted by key, against Quix Streams on the same broker.

The peer is installed into an environment of its own under the user's cache, the first time. Start-up is included on both sides.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bench.figures import ROOT, Cost, Figure, cost_of, environment, millstream, module

ROWS = 2_000_000
PIPELINE = """
connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
sources:
  rows:
    {{type: kafka, topic: rows, format: json, mode: {{type: bounded}},
     schema: {{id: int64, user: string, amount: float64, at: timestamp, country: string, note: string}}}}
transforms:
  large: {{type: filter, from: rows, where: amount > 500}}
  counts: {{type: aggregate, from: large, key_by: [country], aggregate: {{n: count(*)}}}}
sinks:
  out: {{type: file, from: counts, path: out, format: json}}
settings: {{profile: long}}
"""


def measure() -> list[Figure]:
    from millstream.dev.kafka import start_broker

    peer, scripts = environment("bench-quix", "quixstreams==3.28.1"), ROOT / "bench" / "scripts"
    with start_broker() as broker, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost_of(module("kafka.rows", broker.address, "rows", str(ROWS)))
        (folder / "p.yaml").write_text(PIPELINE.format(address=broker.address))
        ours = cost_of(millstream("run", "p.yaml"), cwd=folder)
        quix = cost_of([str(peer), str(scripts / "peer_quix.py"), broker.address, str(ROWS)], cwd=folder)
        _same_counts(folder, quix.output)
    return [*_figures("ours", ours), *_figures("Quix Streams", quix), Figure("CPU, ours / Quix Streams", ours.cpu / quix.cpu, "")]


def _figures(name: str, cost: Cost) -> list[Figure]:
    return [
        Figure(f"{name}: CPU per million rows", cost.cpu / ROWS * 1e6, "s"),
        Figure(f"{name}: wall, start-up included", cost.wall, "s"),
    ]


def _same_counts(folder: Path, theirs: str) -> None:
    """Nobody is compared who computes something else."""
    lines = [json.loads(line) for file in sorted((folder / "out").rglob("*.json")) for line in file.read_text().splitlines()]
    ours = {row["country"]: row["n"] for row in lines if "country" in row}
    if ours != json.loads(theirs.splitlines()[-1]):
        raise RuntimeError(f"the counts differ: ours {ours}, theirs {theirs[-200:]}")
