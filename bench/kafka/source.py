"""5 M messages of 200 bytes from Kafka to nowhere: as fast as Structured Streaming written by hand?"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from bench.figures import Figure, cost_of, median, module

_ROWS = 5_000_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A format and what is asked of it."""

    name: str
    label: str
    bar: float


KINDS = (Kind("json", "JSON", 0.95), Kind("avro", "Avro by the registry", 0.8))


def measure() -> list[Figure]:
    return [figure for kind in KINDS for figure in _figures(kind)]


def _figures(kind: Kind) -> list[Figure]:
    times = json.loads(cost_of(module("kafka.source_run", kind.name, str(_ROWS))).output)
    ours, theirs = median(times["ours"]["wall"]), median(times["theirs"]["wall"])
    cpu = {name: median(times[name]["cpu"]) / times["rows"] * 1e6 for name in ("ours", "theirs")}
    print(f"  {kind.name}: {times}", file=sys.stderr)
    return [
        Figure(f"{kind.label}, ours", times["rows"] / ours / 1e6, "M rows/s"),
        Figure("… CPU of Spark", cpu["ours"], "µs/row"),
        Figure(f"{kind.label}, hand-written", times["rows"] / theirs / 1e6, "M rows/s"),
        Figure("… CPU of Spark", cpu["theirs"], "µs/row"),
        Figure("throughput, ratio", theirs / ours, "", bar=kind.bar, floor=True),
        Figure("CPU, ratio", cpu["ours"] / cpu["theirs"], ""),
    ]
