"""Rows of every node can be watched. Above the point where Spark hands over an epoch, its offsets are read again, which changes no count;
what would give other rows is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.inspector.started import rows, running_pipeline, wait_for

from millstream import read_committed
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
AGAIN = "are read again"
CHAIN = """
name: orders
sources:
  g: {type: generator, rows_per_second: 300, fields: {id: {type: sequence}, user: {type: choice, values: [ann, bob]}}}
transforms:
  anns: {type: filter, from: g, where: user = 'ann'}
  named: {type: with_columns, from: anns, columns: {label: "concat(user, id)"}}
sinks:
  out: {type: file, from: named, path: out, format: parquet}
"""
WINDOWS = """
name: orders
sources:
  g:
    type: generator
    rows_per_second: 300
    fields: {id: {type: sequence}, at: {type: timestamp, step: 1s}}
    event_time: {column: at, watermark: 1s}
transforms:
  even: {type: filter, from: g, where: id % 2 = 0}
  mixed: {type: with_columns, from: g, columns: {dice: rand()}}
  few: {type: filter, from: mixed, where: dice < 0.5}
  sums: {type: window, from: even, window: {type: tumbling, size: 10s}, aggregate: {n: count(*)}}
  maxima: {type: window, from: few, window: {type: tumbling, size: 10s}, aggregate: {n: max(id)}}
sinks:
  out: {type: file, from: sums, path: out, format: parquet}
  out2: {type: blackhole, from: maxima}
"""
Warm = Callable[..., Any]


def test_the_rows_of_every_node_above_are_read_again(pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Warm) -> None:
    with running_pipeline(spark, pipeline(CHAIN)) as running:
        wait_for(100)
        found = {}
        for name in ("g", "anns", "named"):
            shown = warm("tap", "orders", name, "--limit", "15")
            assert shown.stderr.count(AGAIN) == 1, shown.stderr
            found[name] = [json.loads(row) for row in shown.stdout.splitlines()]
        warm("stop", "orders")
        report = running.end()
    assert {user["user"] for user in found["g"]} == {"ann", "bob"}
    assert {user["user"] for user in found["anns"]} == {"ann"}
    assert [set(each[0]) for each in found.values()] == [{"id", "user"}, {"id", "user"}, {"id", "user", "label"}]
    assert {row["id"] for row in found["anns"]} <= set(rows()), "these are rows that the pipeline has processed"
    assert report.nodes["out"].rows_in == len(rows()), "no count changes"
    assert report.nodes["g"].rows_out in range(int(1.6 * len(rows())), int(2.5 * len(rows())))


DICE = """
name: orders
sources:
  g: {type: generator, rows_per_second: 300, fields: {id: {type: sequence}}}
transforms:
  mixed: {type: with_columns, from: g, columns: {dice: rand()}}
  high: {type: filter, from: mixed, where: dice >= 0}
sinks:
  out: {type: file, from: SHOWN, path: out, format: parquet}
  more: {type: blackhole, from: mixed}
"""


@pytest.mark.parametrize("text", [DICE, DICE.replace("  more: {type: blackhole, from: mixed}\n", "")], ids=["staged", "held"])
@pytest.mark.parametrize("shown", ["mixed", "high"])
def test_values_that_vary_are_those_that_the_sink_got(
    shown: str, text: str, pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Warm
) -> None:
    with running_pipeline(spark, pipeline(text.replace("SHOWN", shown))) as running:
        wait_for(50)
        answers = [warm("tap", "orders", shown, "--limit", "5") for _ in range(2)]
        warm("stop", "orders")
        running.end()
    written = {row["id"]: row["dice"] for row in read_committed("out").to_pylist()}
    for answer in answers:
        assert AGAIN not in answer.stderr, answer.stderr
        seen = [json.loads(row) for row in answer.stdout.splitlines()]
        assert len(seen) == 5 and all(written[row["id"]] == row["dice"] for row in seen)


def test_a_rare_row_is_found(pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Warm) -> None:
    with running_pipeline(spark, pipeline(CHAIN)):
        wait_for(50)
        for name in ("g", "named"):  # one row in 100, where a sample has 20
            shown = warm("tap", "orders", name, "--where", "id % 100 < 2", "--limit", "1")
            assert json.loads(shown.stdout)["id"] % 100 < 2


def test_a_filter_with_a_mistake_is_refused_where_it_is(pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Warm) -> None:
    with running_pipeline(spark, pipeline(CHAIN)):
        wait_for(1)
        unknown = warm("tap", "orders", "named", "--where", "lable = 'x'")
        assert unknown.returncode == 1
        assert "MS024" in unknown.stderr
        assert "lable = 'x'\n  ^^^^^" in unknown.stderr
        assert "did you mean `label`?" in unknown.stderr
        assert "MS027" in warm("tap", "orders", "g", "--where", "id >").stderr
        assert "MS067" in warm("tap", "orders", "g", "--where", "CAST(user AS INT) = 1").stderr, "a filter that fails on a row"
        assert "MS066" in warm("tap", "orders", "g", "--where", "no_such_function(id)").stderr, "what only Spark knows"


def test_above_a_window_rows_are_read_again_unless_they_vary(
    pipeline: Callable[..., Topology], spark: Any, sockets: Path, warm: Warm
) -> None:
    with running_pipeline(spark, pipeline(WINDOWS)):
        wait_for(1, column="n")
        shown = warm("tap", "orders", "even", "--limit", "5")
        assert AGAIN in shown.stderr
        assert all(json.loads(row)["id"] % 2 == 0 for row in shown.stdout.splitlines())
        held = warm("tap", "orders", "sums", "--limit", "1")
        assert set(json.loads(held.stdout)) >= {"n"}
        assert AGAIN not in held.stderr, "rows of a node with state are held"
        refused = warm("tap", "orders", "few")
        assert "MS189" in refused.stderr
        assert "`mixed` returns other rows each time" in refused.stderr
