"""Runs a script on 1 M rows in each engine, without Spark. Prints rows per second of CPU time, the child's included, of several turns."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import psutil
import pyarrow as pa

from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext
from millstream.transforms.script import Script
from millstream.worker.scripts.engines import kept
from millstream.worker.scripts.runner import ScriptRunner

ROWS, BATCH, ALONE = 1_000_000, 10_000, 500
_TURNS = 3
TEXT = """
function invoke(row) {
  return {...row, total: row.amount * row.count, label: row.user + ":" + row.country, large: row.amount > 5000};
}
"""
DERIVED = {"total": "float64", "label": "string", "large": "bool"}


def main() -> None:
    batch = _rows()
    found: dict[str, list[float]] = {}
    for engine in ("quickjs", "deno"):
        runner = _runner(batch.schema, engine)
        list(runner.run([batch]))
        found[engine] = [ROWS / _cpu(runner, [batch] * (ROWS // BATCH)) for _ in range(_TURNS)]
    alone = _runner(batch.schema, "quickjs", batch_size=1)
    list(alone.run([batch.slice(0, 1)]))
    found["a call per row"] = [ALONE / _cpu(alone, [batch.slice(0, ALONE)]) for _ in range(_TURNS)]
    for _, engine_ in kept("idle") or []:
        engine_.close()
    print(json.dumps(found))


def _runner(given: pa.Schema, engine: str, batch_size: int | None = None) -> ScriptRunner:
    columns = {field.name: str(field.type).replace("double", "float64") for field in given} | DERIVED
    script = Script.model_validate({"script": TEXT, "engine": engine, "schema": columns, "batch_size": batch_size, "timeout": "60s"})
    context = NodeContext("bench", Path(), LocalStorage(Path()))
    return script.runner(given, script.made(given), context)


def _rows() -> pa.RecordBatch:
    numbers = range(BATCH)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "user": pa.array([f"user{n % 100}" for n in numbers]),
        "amount": pa.array([n * 1.5 for n in numbers]),
        "count": pa.array([n % 7 for n in numbers], pa.int32()),
        "paid": pa.array([n % 2 == 0 for n in numbers]),
        "country": pa.array(["de", "fr"] * (BATCH // 2)),
        "item": pa.array([f"item-{n}" for n in numbers]),
        "shop": pa.array([n % 5 for n in numbers], pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _cpu(runner: ScriptRunner, batches: list[pa.RecordBatch]) -> float:
    """Seconds of CPU time: of this process, and of its children while they live."""
    before, started = _spent(), time.process_time()
    for _ in runner.run(batches):
        pass
    return max(1e-9, time.process_time() - started + _spent() - before)


def _spent() -> float:
    children = psutil.Process(os.getpid()).children(recursive=True)
    return sum(sum(child.cpu_times()[:2]) for child in children)


if __name__ == "__main__":
    main()
