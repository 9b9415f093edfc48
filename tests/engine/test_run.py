"""A pipeline runs from files to files: every row once, counted, and not again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import read_committed

pytestmark = pytest.mark.spark
ORDERS = """
sources:
  raw.orders:
    type: file
    path: in
    format: json
    schema: {id: int64, user: string, amount: float64}
    mode: {type: bounded}
    max_files_per_epoch: 1
transforms:
  large: {type: sql, sql: "SELECT id, user, amount * 2 AS double FROM raw.orders WHERE amount > 10"}
sinks:
  out: {type: file, from: large, path: out, format: parquet}
  all: {type: blackhole, from: raw.orders}
"""


def write(name: str, ids: range, amount: float = 20.0) -> None:
    Path("in").mkdir(exist_ok=True)
    Path(f"in/{name}.json").write_text("".join(json.dumps({"id": i, "user": "ann", "amount": amount}) + "\n" for i in ids))


def test_rows_arrive_once_and_are_counted(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(ORDERS)
    write("a", range(10))
    write("b", range(10, 15))
    write("c", range(15, 18), amount=1.0)
    report = run(topology)
    assert sorted(read_committed("out")["id"].to_pylist()) == list(range(15))
    assert (report.state, report.epochs) == ("done", 3)
    assert report.nodes["raw.orders"].rows_out == 18
    assert report.nodes["large"].rows_out == 15
    assert (report.nodes["out"].rows_in, report.nodes["all"].rows_in) == (15, 18)


def test_a_second_run_reads_nothing_and_says_so(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(ORDERS)
    write("a", range(3))
    run(topology)
    write("late", range(100, 103))
    report = run(topology)
    assert report.epochs == 0
    assert "was done at" in report.notes[0]
    assert read_committed("out").num_rows == 3


def test_reset_starts_a_query_anew(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(ORDERS)
    write("a", range(3))
    run(topology)
    write("b", range(3, 5))
    report = run(topology, reset=("raw.orders",))
    assert report.nodes["raw.orders"].rows_out == 5


def test_an_unknown_query_cannot_be_reset(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(ORDERS)
    write("a", range(3))
    with pytest.raises(Exception, match="MS057"):
        run(topology, reset=("raw.order",))


def test_a_recurring_run_takes_what_is_new(pipeline: Callable, run: Callable) -> None:
    text = ORDERS.replace("mode: {type: bounded}", "mode: {type: continuous}") + "settings: {trigger: {type: available_now}}\n"
    topology = pipeline(text)
    write("a", range(3))
    run(topology)
    write("b", range(3, 5))
    report = run(topology)
    assert report.nodes["raw.orders"].rows_out == 2
    assert sorted(read_committed("out")["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_bounded_generator_ends_by_itself(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources: {g: {type: generator, rows: 2500, rows_per_epoch: 1000, fields: {id: {type: sequence}}}}
        sinks: {out: {type: memory, from: g}}
    """)
    report = run(topology)
    assert sorted(row["id"] for row in topology.node("out").component.rows()) == list(range(2500))
    assert report.nodes["g"].rows_out == 2500
    assert report.epochs == 3


def test_unions_and_several_queries_run_side_by_side(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources:
          a: {type: memory, rows: [{id: 1}, {id: 2}]}
          b: {type: memory, rows: [{id: 3}]}
        transforms:
          both: {type: union, from: [a, b]}
          odd: {type: filter, from: both, where: id % 2 = 1}
          joined: {type: sql, sql: "SELECT id, 'a' AS origin FROM a UNION ALL SELECT id, 'b' FROM b"}
        sinks:
          odds: {type: memory, from: odd}
          named: {type: memory, from: joined}
          plain: {type: memory, from: a}
    """)
    report = run(topology)
    rows = {name: sorted(row["id"] for row in topology.node(name).component.rows()) for name in ("odds", "named", "plain")}
    assert rows == {"odds": [1, 3], "named": [1, 2, 3], "plain": [1, 2]}
    assert set(report.queries) == {"a", "both", "joined"}


MIXED = """
sources:
  a: {type: memory, rows: [{id: 1}]}
  g: {type: generator, rows: 50, rows_per_epoch: SIZE, fields: {id: {type: sequence}}}
transforms: {both: {type: union, from: [a, g]}}
sinks: {out: {type: memory, from: both}}
"""


def test_sources_that_end_in_different_ways_share_a_query_when_they_can(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(MIXED.replace("SIZE", "100"))
    run(topology)
    assert len(topology.node("out").component.rows()) == 51


def test_and_are_refused_when_they_cannot(pipeline: Callable, run: Callable) -> None:
    with pytest.raises(Exception, match="MS036"):
        run(pipeline(MIXED.replace("SIZE", "10")))
