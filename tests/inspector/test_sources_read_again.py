"""Sources of several kinds are read again between the offsets of an epoch: with rejects, unions, and below them an incremental query."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.inspector.started import running_pipeline

from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
GENERATED = "{type: generator, rows_per_second: 100, fields: {id: {type: sequence}, amount: {type: choice, values: ['1', '2', 'x']}}}"
HEAD = "name: orders\nsources:\n"
PIPELINES = {
    "files, and rejects that are dropped": HEAD
    + "  g: {type: file, path: in, format: csv, schema: {id: bigint, amount: string}}\n"
    + "transforms:\n"
    + "  watched: {type: select, from: g, columns: {id: id, amount: CAST(amount AS INT)}, on_error: drop}\n"
    + '  below: {type: sql, sql: "SELECT amount, count(*) AS n FROM watched GROUP BY amount"}\n'
    + "sinks: {out: {type: blackhole, from: below}}\n",
    "an incremental query": HEAD
    + f"  g: {GENERATED}\n"
    + "transforms:\n"
    + "  watched: {type: filter, from: g, where: amount <> 'x'}\n"
    + '  below: {type: sql, sql: "SELECT amount, count(*) AS n FROM watched GROUP BY amount"}\n'
    + "sinks: {out: {type: blackhole, from: below}}\n",
    "a union above an incremental query": HEAD
    + f"  g: {GENERATED}\n  h: {GENERATED}\n"
    + "transforms:\n"
    + "  both: {type: union, from: [g, h]}\n"
    + "  watched: {type: filter, from: both, where: amount <> 'x'}\n"
    + '  below: {type: sql, sql: "SELECT amount, max(id) AS n FROM watched GROUP BY amount"}\n'
    + "sinks: {out: {type: blackhole, from: below}}\n",
}


@contextmanager
def files_arrive() -> Iterator[None]:
    """Files with one bad row each."""
    Path("in").mkdir()
    ended = threading.Event()

    def write() -> None:
        for number in range(1000):
            if ended.wait(0.3):
                return
            Path(f"in/.{number}").write_text(f"id,amount\n{number},1\n{number},x\n")
            Path(f"in/.{number}").rename(f"in/{number}.csv")

    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    finally:
        ended.set()
        writing.join()


@pytest.mark.parametrize("kind", PIPELINES)
def test_its_rows_are_those_of_the_epoch(
    kind: str, pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Callable[..., Any]
) -> None:
    with files_arrive(), running_pipeline(spark, pipeline(PIPELINES[kind])) as running:
        deadline = time.monotonic() + 60
        while not json.loads(warm("list", "--format", "json").stdout) and time.monotonic() < deadline:
            time.sleep(0.2)
        shown = warm("tap", "orders", "watched", "--limit", "4")
        assert "are read again" in shown.stderr, shown.stderr
        found = [json.loads(row) for row in shown.stdout.splitlines()]
        assert [set(row) for row in found] == [{"id", "amount"}] * 4
        assert {str(row["amount"]) for row in found} <= {"1", "2"}
        warm("stop", "orders")
        running.end()
