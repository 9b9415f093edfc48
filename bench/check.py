"""How long does `millstream check` take on a pipeline of 20 nodes?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.figures import Figure, cost_of, median, millstream

FIELDS = "{id: {type: sequence}, user: {type: choice, values: [a, b]}, amount: {type: uniform, min: 1, max: 100}}"


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.yaml"
        path.write_text(pipeline(20))
        cost_of(millstream("check", str(path)))
        costs = [cost_of(millstream("check", str(path))) for _ in range(7)]
    return [
        Figure("CPU of `millstream check`, 20 nodes", median([cost.cpu for cost in costs]), "s", bar=0.6),
        Figure("wall time", median([cost.wall for cost in costs]), "s"),
    ]


def pipeline(nodes: int) -> str:
    lines = ["sources:", f"  orders: {{type: generator, rows: 10, fields: {FIELDS}}}", "transforms:"]
    above = "orders"
    for index in range(nodes - 4):
        name = f"step{index}"
        sql = f"SELECT id, user, amount * 2 AS amount FROM {above} WHERE amount > {index}"
        lines.append(f"  {name}: {{type: sql, sql: '{sql}', primary_key: id}}")
        above = name
    sinks = [f"  {name}: {{type: {kind}, from: {above}}}" for name, kind in (("a", "print"), ("b", "blackhole"), ("c", "memory"))]
    return "\n".join([*lines, "sinks:", *sinks])
