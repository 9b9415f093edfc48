"""A table that the stream fills itself: before the sinks of the same epoch, the last row of a key, null keys left out."""

from collections.abc import Callable

import pytest
from tests.lookups.live import step
from tests.servers.postgres import Database

pytestmark = pytest.mark.spark
PLACES = {
    "memory": "backend: memory",
    "sqlite": "backend: sqlite, path: t.db",
    "postgres": "backend: postgres, schema: {schema}",
}
SAME = """
connections: {connections}
sources:
  orders:
    type: memory
    rows:
      - {{id: 1, user_id: a, tier: x}}
      - {{id: 2, user_id: b, tier: y}}
      - {{id: 3, user_id: a, tier: z}}
      - {{id: 4, user_id: null, tier: w}}
    schema: {{id: int64, user_id: string, tier: string}}
transforms:
  good: {{type: dynamic_table, {place}, key: user_id, columns: {{tier: string}}, sql: "SELECT user_id, tier FROM orders WHERE tier <> 'y'"}}
  out_rows: {{type: sql, sql: "SELECT id, g.tier FROM orders o LEFT JOIN good g ON o.user_id = g.user_id"}}
sinks:
  out: {{type: memory, from: out_rows}}
"""


@pytest.mark.parametrize("place", PLACES)
def test_an_epoch_sees_its_own_rows(place: str, request: pytest.FixtureRequest, pipeline: Callable, run: Callable) -> None:
    connections, schema = "{}", ""
    if place == "postgres":
        server: Database = request.getfixturevalue("postgres")
        connections, schema = f"{{postgres: {server.connection}}}", server.schema()
    topology = pipeline(SAME.format(connections=connections, place=PLACES[place].format(schema=schema)))
    report = run(topology)
    got = {row["id"]: row["tier"] for row in topology.node("out").component.rows()}
    assert got == {1: "z", 2: None, 3: "z", 4: None}
    assert report.nodes["good"].rows_out == 1


LIVE = """
sources:
  orders: {type: file, path: in, format: json, schema: {id: int64, user_id: string, _op: string},
           mode: {type: continuous, poll_interval: 50ms}, max_files_per_epoch: 1}
transforms:
  known: {type: dynamic_table, backend: memory, key: user_id, sql: "SELECT user_id, _op FROM orders"}
  seen: {type: sql, sql: "SELECT id, dynamic_table_check('known', 'a') AS a, dynamic_table_check('known', 'b') AS b FROM orders"}
sinks:
  out: {type: memory, from: seen}
"""


@pytest.mark.parametrize("op", ["_op", "_gs_op"])
def test_a_delete_removes_its_key_and_memory_stays_between_epochs(pipeline: Callable, run: Callable, op: str) -> None:
    rows = [{"id": 0, "user_id": "a", op: "i"}, {"id": 1, "user_id": "b", op: "i"}, {"id": 2, "user_id": "a", op: "d"}]
    got = step(pipeline(LIVE.replace("_op", op)), run, rows, {})
    assert [(row["a"], row["b"]) for row in got] == [(True, False), (True, True), (False, True)]


OTHER = """
sources:
  people: {type: memory, rows: [{name: ann}], schema: {name: string}}
  orders: {type: memory, rows: [{id: 1}], schema: {id: int64}}
transforms:
  named: {type: dynamic_table, backend: sqlite, path: t.db, key: name, sql: SELECT name FROM people}
sinks:
  out: {type: memory, from: orders}
"""


def test_a_source_may_feed_nothing_but_a_table(pipeline: Callable, run: Callable) -> None:
    import sqlite3

    report = run(pipeline(OTHER))
    assert report.state == "done"
    assert sqlite3.connect("t.db").execute("SELECT name FROM named").fetchall() == [("ann",)]
