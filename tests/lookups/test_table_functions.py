"""SQL looks rows up in a dynamic table: by functions and by joins, on every backend."""

from collections.abc import Callable

import pytest
from tests.lookups.conftest import Bench

pytestmark = pytest.mark.spark
ROWS = """
    rows:
      - {id: 1, user_id: "7", friends: ["7", null]}
      - {id: 2, user_id: "8", friends: []}
      - {id: 3, user_id: null, friends: null}
      - {id: 4, user_id: "9", friends: ["8", "9"]}
    schema: {id: int64, user_id: string, friends: "list<string>"}
"""
PIPELINE = """
connections: {connections}
sources:
  orders:
    type: memory{rows}
transforms:
  watched: {table}
  out_rows: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: memory, from: out_rows}}
"""


def _rows(bench: Bench, pipeline: Callable, run: Callable, sql: str) -> list[dict]:
    topology = pipeline(PIPELINE.format(connections=bench.connections, rows=ROWS, table=bench.table(), sql=sql))
    run(topology)
    return sorted(topology.node("out").component.rows(), key=lambda row: row["id"])


def test_values_arrays_and_nulls(bench: Bench, pipeline: Callable, run: Callable) -> None:
    bench.put("7", "gold")
    bench.put("9", None)
    columns = "id, dynamic_table_check('watched', user_id) AS here, dynamic_table_check('watched', friends) AS near"
    got = _rows(bench, pipeline, run, f"SELECT {columns}, dynamic_table_get('watched', user_id).tier FROM orders")
    tiers = {row["id"]: row.pop("tier") for row in got}
    assert got == [
        {"id": 1, "here": True, "near": True},
        {"id": 2, "here": False, "near": False},
        {"id": 3, "here": None, "near": None},
        {"id": 4, "here": True, "near": True},
    ]
    assert (tiers[1], tiers[2], tiers[3]) == ("gold", None, None)


def test_joins_give_the_columns(bench: Bench, pipeline: Callable, run: Callable) -> None:
    bench.put("7", "gold")
    left = "SELECT o.id, w.tier, w.user_id AS k FROM orders o LEFT JOIN watched w ON o.user_id = w.user_id WHERE o.id < 4"
    assert _rows(bench, pipeline, run, left) == [
        {"id": 1, "tier": "gold", "k": "7"},
        {"id": 2, "tier": None, "k": None},
        {"id": 3, "tier": None, "k": None},
    ]


def test_an_inner_join_keeps_what_is_there(bench: Bench, pipeline: Callable, run: Callable) -> None:
    bench.put("9", "silver")
    assert _rows(bench, pipeline, run, "SELECT id, tier FROM orders JOIN watched ON watched.user_id = orders.user_id") == [
        {"id": 4, "tier": "silver"}
    ]


def test_a_table_that_is_missing_is_made_and_empty(bench: Bench, pipeline: Callable, run: Callable) -> None:
    assert _rows(bench, pipeline, run, "SELECT id FROM orders WHERE dynamic_table_check('watched', user_id)") == []
    bench.put("8", "new")  # into the table that the run has made: a stranger's statement fits it


def test_numbers_are_found_among_texts(bench: Bench, pipeline: Callable, run: Callable) -> None:
    bench.put("2", "two")
    assert _rows(bench, pipeline, run, "SELECT id, dynamic_table_get('watched', id).tier FROM orders WHERE id = 2") == [
        {"id": 2, "tier": "two"}
    ]
