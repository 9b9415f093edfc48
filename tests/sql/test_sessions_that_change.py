"""Sessions over rows that change, which merge and split them: the result equals Spark's batch answer after every epoch."""
# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper
from tests.stateful.conftest import at

from millstream.connectors.memory.sink import MemorySink
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.catalyst.bridge import Bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "id bigint, k string, v bigint, at timestamp"
SESSION = "session_window(at, '10 seconds')"
QUERIES = {
    "by key": f"SELECT k, {SESSION} s, count(*) n, sum(v) total FROM t GROUP BY 1, 2",
    "of all rows": f"SELECT {SESSION} s, count(*) n, max(v) most FROM t GROUP BY 1",
    "its edges": f"SELECT k, session_window.start a, session_window.end b, avg(v) m FROM t GROUP BY k, {SESSION} HAVING count(*) < 3",
    "DISTINCT": f"SELECT k, {SESSION} s, count(DISTINCT v) n FROM t GROUP BY 1, 2",
    "a gap per row": "SELECT k, session_window(at, if(v > 5, '2 seconds', '20 seconds')) s, array_join(sort_array(collect_set(v)), ' ') vs FROM t GROUP BY 1, 2",
    "an aggregate above": f"SELECT k, count(*) sessions, max(n) longest FROM (SELECT k, {SESSION} s, count(*) n FROM t GROUP BY 1, 2) GROUP BY k",
}
ROW = {
    1: (1, "a", 1, at(0)),
    2: (2, "a", 2, at(8)),
    3: (3, "a", 3, at(16)),
    4: (4, "b", 4, at(3)),
    5: (5, "a", 5, at(40)),
    6: (6, None, 6, at(40)),
}
EPOCHS = [
    [(*ROW[1], 1), (*ROW[3], 1), (*ROW[4], 1), (*ROW[6], 1)],
    [(*ROW[2], 1), (*ROW[5], 1)],  # merges the sessions of 1 and 3
    [(*ROW[2], -1)],  # splits them again
    [(*ROW[2], 1), (*ROW[1], -1), (1, "b", 9, at(11), 1), (*ROW[6], -1)],  # an update moves row 1 to another key
]


def check(spark: SparkSession, sql: str, folder: Path, epochs: list[list[tuple[Any, ...]]]) -> None:
    keeper, rows = Keeper(spark, sql, folder, {"t": SCHEMA}), Counter[tuple[Any, ...]]()
    for epoch, changes in enumerate(epochs):
        for *row, weight in changes:
            rows[tuple(row)] += weight
        keeper.apply(keeper.step(epoch, t=changes))
        spark.createDataFrame(list(rows.elements()), SCHEMA).createOrReplaceTempView("t")
        assert keeper.result == Counter(map(tuple, spark.sql(sql).collect())), f"epoch {epoch}"


@pytest.mark.parametrize("name", QUERIES)
def test_it_equals_the_batch_answer_after_every_epoch(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check(spark, QUERIES[name], tmp_path, EPOCHS)


def test_an_edge_identifies_a_session(spark: SparkSession, tmp_path: Path) -> None:
    assert Keeper(spark, QUERIES["its edges"], tmp_path, {"t": SCHEMA}).kept.key == ("k", "a")


def test_without_its_mechanism_the_answer_is_wrong(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: columns that still are sessions for Spark are merged wherever changes are added up."""
    alias = Bridge.alias
    monkeypatch.setattr(Bridge, "alias", lambda *given, is_session=True: alias(*given))  # noqa: PLW0108
    with pytest.raises(AssertionError):
        check(spark, QUERIES["by key"], tmp_path, EPOCHS)


@pytest.mark.parametrize(
    "node",
    [
        "{type: sql, sql: \"SELECT k, session_window.start a, count(*) n FROM t GROUP BY k, session_window(at, '10 seconds')\"}",
        "{type: window, from: t, key_by: [k], window: {type: session, gap: 10s}, aggregate: {n: count(*)}, emit: updates}",
    ],
)
def test_a_pipeline_delivers_them(node: str, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    changes = [(1, 0, "i"), (2, 16, "i"), (3, 8, "i"), (3, 40, "u"), (1, 0, "d")]
    rows = ", ".join(f"{{id: {i}, k: a, at: '2024-01-01T00:00:{second:02}Z', _op: {op}}}" for i, second, op in changes)
    topology = pipeline(f"""
        sources:
          t:
            type: memory
            rows: [{rows}]
            schema: {{id: int64, k: string, at: timestamp, _op: string}}
            rows_per_epoch: 1
            primary_key: id
            event_time: {{column: at, watermark: 0s}}
        transforms: {{q: {node}}}
        sinks: {{out: {{type: memory, from: q}}}}
    """)
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    found = [(row.get("a") or row.get("window_start"), row["n"], row["_op"]) for row in sink.rows()]
    kept = {start.second: (n, op) for start, n, op in found}
    assert {second: n for second, (n, op) in kept.items() if op != "d"} == {16: 1, 40: 1}
    assert (0, 3) in {(start.second, n) for start, n, _ in found}, "three rows were one session"


def test_rows_that_come_and_go_at_random(spark: SparkSession, tmp_path: Path) -> None:
    chance, here = random.Random(1), list[tuple[Any, ...]]()
    epochs = []
    for epoch in range(4):
        gone = chance.sample(here, len(here) // 3)
        come = [(100 * epoch + each, chance.choice("ab"), each, at(chance.randrange(120))) for each in range(8)]
        here = [row for row in here if row not in gone] + come
        epochs.append([*((*row, -1) for row in gone), *((*row, 1) for row in come)])
    check(spark, QUERIES["by key"], tmp_path, epochs)
