"""A script's runner travels by value: it runs where Millstream is not installed."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from tests.worker.test_workers_without_millstream import run_bare

from millstream.jvm.pickling import by_value


def test_it_runs_without_millstream(runner: Callable, tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2, 3]})
    prepared = runner("(row) => row.x > 1n ? {x: row.x * 2n} : null", batch.schema, isolate=False, timeout="10s")
    with by_value():
        done = run_bare(lambda: [each.to_pydict() for each in prepared.run([batch])], tmp_path)
    assert done.stdout.strip() == "[{'x': [4, 6]}]", done.stderr


def test_engines_are_kept_for_the_next_task(runner: Callable) -> None:
    from millstream.worker.scripts.engines import kept

    batch = pa.RecordBatch.from_pydict({"x": [1]})
    prepared = runner("(row) => row", batch.schema, isolate=False)
    list(prepared.run([batch]))
    (first,) = [engine for spec, engine in kept("idle") if spec == prepared.spec]
    list(prepared.run([batch]))
    (second,) = [engine for spec, engine in kept("idle") if spec == prepared.spec]
    assert second is first
