"""The golden queries as one pipeline, and the rules by which results are compared.

Rows are compared as a multiset, numbers to six significant digits; a changelog is applied first. `every_aggregate` is compared without its
four sketches, whose values are the engine's own.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from millstream import committed_files

HOME = Path(os.environ.get("MILLSTREAM_CONFORMANCE") or Path(__file__).parents[2].parent / "shared" / "conformance") / "arroyo"
CHANGED = ("debezium_agg", "debezium_pass_through")
"""Queries over a changelog, which comes from Kafka."""
KEYS: dict[str, list[str]] = {
    "aggregates": [],
    "grouped_aggregates": ["counter_mod"],
    "every_aggregate": ["event_type"],
    "active_drivers": [],
    "filter_updating_aggregates": [],
}
"""Results that are updated, and what identifies their rows."""
FUNCTIONS = """
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import millstream


@millstream.function(returns="int64")
def double_negative(x):
    return pc.multiply(x, -2)


@millstream.function(returns="float64")
def my_median_arr(lists):
    return pa.array([float(np.median(values.values)) for values in lists], pa.float64())


@millstream.function(returns="int64")
def max_product_arr(left, right):
    return pa.array([max(pc.multiply(a.values, b.values).to_pylist()) for a, b in zip(left, right)], pa.int64())
"""
SCHEMAS = {
    "cars": {"timestamp": "timestamp", "driver_id": "int64", "event_type": "string", "location": "string"},
    "impulse": {"timestamp": "timestamp", "counter": "int64", "subtask_index": "int64"},
}


def names() -> list[str]:
    return sorted(path.stem for path in (HOME / "spark_sql").glob("*.sql")) if HOME.is_dir() else []


def query(name: str) -> str:
    return (HOME / "spark_sql" / f"{name}.sql").read_text()


def project(folder: Path, epochs: int = 6, moving: bool = False) -> None:
    """Write the pipeline, its functions and its inputs, cut into as many files as epochs are wanted. With a moving watermark windows
    close one by one, and not all together at the end.
    """
    for table in ("cars", "impulse"):
        _cut(folder / table, (HOME / "inputs" / f"{table}.json").read_text().splitlines(), epochs)
    (folder / "udfs.py").write_text(FUNCTIONS)
    chosen = [name for name in names() if name not in CHANGED and (not moving or "window(" in query(name))]
    (folder / "p.yaml").write_text(yaml.safe_dump(pipeline(chosen, moving), sort_keys=False))


def pipeline(chosen: list[str], moving: bool = False) -> dict[str, Any]:
    files = {"type": "file", "mode": {"type": "bounded"}, "max_files_per_epoch": 1}
    timed = {"event_time": {"column": "timestamp", "watermark": "1m"}}
    sources = {name: {**files, "path": name, "format": "json", "schema": schema, **timed} for name, schema in SCHEMAS.items()}
    sources["cars_raw"] = {**files, "path": "cars", "format": "text"}
    return {
        "name": "goldens",
        "functions": {name: f"udfs:{name}" for name in ("double_negative", "my_median_arr", "max_product_arr")},
        "sources": sources,
        "transforms": {name: {"type": "sql", "sql": query(name), **({"late": "fail"} if moving else {})} for name in chosen},
        "sinks": {f"{name}_out": {"type": "file", "from": name, "path": f"out/{name}", "format": "json"} for name in chosen},
    }


def result(folder: Path, name: str) -> Counter[str]:
    lines = [line for file in committed_files(str(folder / "out" / name)) for line in Path(file).read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    return applied(rows, KEYS[name]) if name in KEYS else applied(rows)


def applied(rows: list[dict[str, Any]], key: list[str] | None = None) -> Counter[str]:
    """The table that a changelog describes: by key, or by whole rows if it has none."""
    if key is not None:
        last = {tuple(row[column] for column in key): row for row in rows}
        return Counter(normal(row) for row in last.values() if row["_op"] != "d")
    table: Counter[str] = Counter()
    for row in rows:
        table[normal(row)] += -1 if row.get("_op") == "d" else 1
    assert all(count >= 0 for count in table.values()), "a row is removed that is not there"
    assert all(row.get("_op", "i") != "u" for row in rows), "an update needs a key"
    return +table


def golden(name: str) -> Counter[str]:
    rows = [json.loads(line) for line in (HOME / "golden_outputs" / f"{name}.json").read_text().splitlines() if line.strip()]
    if not rows or "after" not in rows[0]:
        return Counter(normal(row) for row in rows)
    table: Counter[str] = Counter()
    for change in rows:
        table.subtract([normal(change["before"])] if change["before"] else [])
        table.update([normal(change["after"])] if change["after"] else [])
    return +table


def normal(row: dict[str, Any]) -> str:
    kept = {key: _number(value) for key, value in row.items() if value is not None and key != "_op" and not key.startswith("approx_")}
    return json.dumps(kept, sort_keys=True)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(f"{value:.6g}") + 0.0


def _cut(folder: Path, lines: list[str], count: int) -> None:
    folder.mkdir(parents=True)
    size = math.ceil(len(lines) / count)
    for index in range(count):
        path = folder / f"{index:03}.json"
        path.write_text("".join(f"{line}\n" for line in lines[index * size : (index + 1) * size]))
        os.utime(path, (1_700_000_000 + index, 1_700_000_000 + index))
