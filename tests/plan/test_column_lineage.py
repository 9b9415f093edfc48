"""Which columns of sources a sink's columns are made of, through all transforms; what is not certain is absent."""

from __future__ import annotations

import pytest

from millstream.plan.column_lineage import column_lineage
from millstream.plan.schemas import propagate
from millstream.spec.loader import loads

SOURCES = """
sources:
  orders: {type: memory, rows: [], schema: {id: int64, uid: int64, amount: float64, note: string}}
  users: {type: memory, rows: [], schema: {id: int64, name: string}}
"""
SINK = "\nsinks: {out: {type: memory, from: t}}"


def made_of(transforms: str) -> dict[str, set[str]]:
    """Column of the sink → `source.column`, with what happens to it if that is not nothing."""
    topology = loads(SOURCES + "transforms:\n" + transforms + SINK).require()
    found = column_lineage(topology, propagate(topology))["out"]
    return {
        name: {f"{each.source}.{each.column}{'' if each.how == 'IDENTITY' else f' {each.how.lower()}'}" for each in parts}
        for name, parts in found.items()
    }


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT id, amount * 2 AS double, upper(note) AS note, 1 AS one FROM orders",
            {"id": {"orders.id"}, "double": {"orders.amount transformation"}, "note": {"orders.note transformation"}, "one": set()},
        ),
        (
            "SELECT u.name, sum(o.amount) AS spent, count(*) AS n FROM orders o JOIN users u ON o.uid = u.id GROUP BY u.name",
            {"name": {"users.name"}, "spent": {"orders.amount aggregation"}, "n": set()},
        ),
        (
            "WITH x AS (SELECT uid, amount + id AS a FROM orders) SELECT uid AS who, max(a) AS most FROM x GROUP BY uid",
            {"who": {"orders.uid"}, "most": {"orders.amount aggregation", "orders.id aggregation"}},
        ),
        (
            "SELECT id, note AS text FROM orders UNION ALL SELECT id, name FROM users",
            {"id": {"orders.id", "users.id"}, "text": {"orders.note", "users.name"}},
        ),
        (
            "SELECT CASE WHEN amount > 1 THEN note END AS a FROM orders",
            {"a": {"orders.amount transformation", "orders.note transformation"}},
        ),
        ("SELECT *, id + 1 AS next FROM users", {"id": {"users.id"}, "name": {"users.name"}, "next": {"users.id transformation"}}),
    ],
)
def test_columns_of_sql(sql: str, expected: dict[str, set[str]]) -> None:
    found = made_of(f'  t: {{type: sql, sql: "{sql}"}}')
    assert {name: parts for name, parts in found.items() if not name.startswith("_")} == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, word FROM orders LATERAL VIEW explode(split(note, ' ')) w AS word",
        "FROM orders |> SELECT id",
        "SELECT transform(array(id), x -> x + amount) AS a FROM orders",
    ],
)
def test_what_is_not_certain_is_absent_or_right(sql: str) -> None:
    found = made_of(f'  t: {{type: sql, sql: "{sql}"}}')
    assert found in ({}, {"a": {"orders.id transformation", "orders.amount transformation"}})


def test_through_other_transforms() -> None:
    found = made_of("""
  a: {type: with_columns, from: orders, columns: {cents: amount * 100}}
  b: {type: filter, from: a, where: cents > 1}
  c: {type: drop, from: b, columns: [note]}
  t: {type: select, from: c, columns: {id: id, c: cents, day: "concat(uid, id)"}}
""")
    assert found == {
        "id": {"orders.id"},
        "c": {"orders.amount transformation"},
        "day": {"orders.uid transformation", "orders.id transformation"},
    }


def test_totals_and_merged_streams() -> None:
    found = made_of("""
  a: {type: select, from: orders, columns: {id: id, text: note}}
  b: {type: select, from: users, columns: {id: id, text: lower(name)}}
  u: {type: union, from: [a, b]}
  t: {type: aggregate, from: u, key_by: [id], aggregate: {longest: max(text), n: count(*)}}
""")
    assert found == {"id": {"orders.id", "users.id"}, "longest": {"orders.note aggregation", "users.name aggregation"}, "n": set()}


def test_without_a_schema_nothing_is_claimed() -> None:
    topology = loads(SOURCES + SINK.replace("from: t", "from: orders")).require()
    assert column_lineage(topology, {"orders": None})["out"] == {}
