"""`plan` and `graph` show the paths of rows, how often sources are read, lookup tables, and changed queries line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checkpoint.evolution import PlanHistory, changes
from millstream.checkpoint.layout import Checkpoint
from millstream.cli.plan_text import document, text
from millstream.clients.storage import LocalStorage
from millstream.engine.offline.preview import view
from millstream.plan.cutting import cut
from millstream.plan.diagram import mermaid, tree
from millstream.plan.topology import Topology
from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {type: memory, rows: [{id: 1, user: a, at: 2026-01-01T00:00:00}], event_time: {column: at}}
  payments: {type: memory, rows: [{id: 1, user: a, at: 2026-01-01T00:00:00}], event_time: {column: at}}
transforms:
  typed: {type: filter, from: orders, where: id > 0, on_error: {dead_letter: bad}}
  named:
    type: join
    left: typed
    table: {type: file, path: users.csv, format: csv, schema: {user: string, name: string}}
    refresh: 5m
    on: [user]
    kind: left
  paid: {type: join, left: typed, right: payments, on: [id], within: {before: 0s, after: 1h}}
  slim: {type: select, from: paid, columns: [id]}
  watched: {type: dynamic_table, backend: memory, key: user}
  seen: {type: sql, sql: "SELECT * FROM named WHERE dynamic_table_check('watched', user)"}
sinks:
  out: {type: print, from: slim}
  all: {type: print, from: seen}
  bad: {type: print}
"""
QUERY = """
sources: {o: {type: memory, rows: [{id: 1}]}}
transforms:
  q:
    type: sql
    sql: |
      SELECT id,
        %s AS x
      FROM o
sinks: {out: {type: print, from: q}}
"""


@pytest.fixture
def topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topology:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text("user,name\n")
    return loads(PIPELINE).require()


def test_the_plan_shows_the_paths_from_the_sources_to_the_root_and_to_the_sinks(topology: Topology) -> None:
    lines = [line.strip() for line in text(view(topology, analyse=False)).splitlines()]
    paid = lines[lines.index("query paid (not started yet)") :]
    assert paid[1:4] == ["orders → typed → paid", "payments → paid", "paid → slim  ⇒  out"]
    orders = lines[lines.index("query orders (not started yet)") :]
    assert {"orders → typed → named → seen  ⇒  all", "rejects of typed  ⇒  bad"} <= set(orders[: orders.index("sources")])


def test_the_plan_says_how_often_each_source_is_read(topology: Topology) -> None:
    lines = text(view(topology, analyse=False)).splitlines()
    assert "  orders: read per epoch once by query orders, once by query paid" in lines
    assert "  payments: read per epoch once by query paid" in lines


def test_the_plan_names_the_lookup_tables(topology: Topology) -> None:
    seen = view(topology, analyse=False)
    assert "  named looks up rows in users.csv (file, read again every 5m)" in text(seen)
    assert "  seen looks up rows in watched (dynamic table, memory)" in text(seen)
    queries = {query["name"]: query for query in document(seen)["queries"]}
    assert queries["orders"]["tables"]["seen"] == ["watched (dynamic table, memory)"]
    assert queries["paid"]["reads"] == {"orders": 1, "payments": 1}
    assert queries["paid"]["paths"] == [["orders", "typed", "paid"], ["payments", "paid"]]


def test_pictures_have_the_tables_too(topology: Topology) -> None:
    assert "named (join) ⟵ users.csv (file, read again every 5m)" in tree(topology)
    drawn = mermaid(topology)
    assert 'n_named_table_0[("users.csv (file, read again every 5m)")] -. looked up .-> n_named' in drawn
    assert "n_watched -. looked up .-> n_seen" in drawn


def test_a_changed_query_is_shown_line_by_line(tmp_path: Path) -> None:
    before, after = (loads(QUERY % column).require() for column in ("1", "2"))
    checkpoint = Checkpoint(LocalStorage(tmp_path), "p")
    (plan,) = cut(before)
    PlanHistory(before, plan, checkpoint, checkpoint.query("o")).append([], False)
    checkpoint.query("o").storage.put("offsets/0", b"v1\n{}\n{}")
    (change,) = changes(after, cut(after)[0], checkpoint)
    assert change.text.splitlines() == [
        "`q`: `sql` changed",
        "    @@ -1,3 +1,3 @@",
        "     SELECT id,",
        "    -  1 AS x",
        "    +  2 AS x",
        "     FROM o",
    ]
    assert not change.breaking


def test_the_plan_says_where_state_is_and_where_the_watermark_comes_from(topology: Topology) -> None:
    lines = [line.strip() for line in text(view(topology, analyse=False)).splitlines()]
    assert "state in: paid; each result once, when it has closed" in lines
    assert [line.partition(" (")[0] for line in lines if line.startswith("watermark from:")] == ["watermark from: orders.at"]
