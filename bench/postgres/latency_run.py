"""Epochs of few rows into one table, in turns by parameters and by staging tables: `latency_run.py ROWS…`. Prints the seconds of each
stage and commit.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from millstream.connectors.postgres.sink import PostgresSinkRun
from millstream.dev.postgres import NAME, start_postgres
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads
from millstream.sql.catalyst.small_rows import SMALL_BYTES

EPOCHS, WARM, TURNS = 80, 40, 2
PIPELINE = """
name: {pipeline}
connections: {{postgres: {{host: 127.0.0.1, port: {port}, database: {name}, user: {name}, password: {name}}}}}
sources:
  g:
    type: generator
    rows: {total}
    rows_per_epoch: {rows}
    fields: {{id: {{type: sequence}}, n: {{type: uniform, min: 0, max: 999}}, note: {{type: choice, values: [red, green, blue]}}}}
transforms:
  some: {{type: sql, sql: "SELECT id % {keys} AS id, n, note, timestamp_micros(id) AS at, n * 0.5D AS amount FROM g"}}
sinks: {{out: {{type: postgres, from: some, table: {pipeline}, primary_key: id}}}}
settings: {{checkpoint: {folder}}}
"""


@contextmanager
def timed(seconds: list[float], large: bool) -> Iterator[None]:
    """Time each stage and its commit. `large`: every epoch is expected to be large, and is staged in tables."""
    stage, commit, begun = PostgresSinkRun.stage, PostgresSinkRun.commit, [0.0]

    def staging(run: PostgresSinkRun, frame: Any, epoch: Any) -> Any:
        if large:
            run.small_way(epoch).learn(0, SMALL_BYTES + 1)
        begun[0] = time.perf_counter()
        staged = stage(run, frame, epoch)
        begun[0] = time.perf_counter() - begun[0]
        return staged

    def committing(run: PostgresSinkRun, staged: Any, epoch: Any) -> None:
        started = time.perf_counter()
        commit(run, staged, epoch)
        seconds.append(begun[0] + time.perf_counter() - started)

    with patch.object(PostgresSinkRun, "stage", staging), patch.object(PostgresSinkRun, "commit", committing):
        yield


def main(sizes: list[int]) -> None:
    found: dict[str, list[float]] = {}
    with start_postgres() as server:
        session = begin(SessionOptions(master="local[2]", profile="long")).finish()
        for turn in range(TURNS):
            for rows in sizes:
                for way in ("small", "large"):
                    seconds: list[float] = []
                    options = {"pipeline": f"{way}{rows}_{turn}", "port": server.port, "name": NAME, "rows": rows, "keys": rows * 4}
                    text = PIPELINE.format(**options, total=rows * (EPOCHS + WARM), folder=tempfile.mkdtemp())
                    with timed(seconds, way == "large"):
                        SparkEngine(session.spark).run(loads(text).require(), RunOptions())
                    found.setdefault(f"{way} {rows}", []).extend(seconds[WARM:])
        session.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
