"""Calls on dynamic tables and joins with them become functions, in Spark's parsed plan."""

import re
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from millstream.sql.catalyst import names
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.lookups import look_up

pytestmark = pytest.mark.spark
TABLES: Any = {
    "watched": SimpleNamespace(key="user", schema=pa.schema([("user", pa.string()), ("tier", pa.string())])),
    "my.sites": SimpleNamespace(key="id", schema=pa.schema([("id", pa.int64()), ("a b", pa.string())])),
}


@pytest.fixture
def bridge(spark: Any) -> Bridge:
    return Bridge(spark)


def name(verb: str, table: str) -> str:
    return f"{verb}_{table.replace('.', '_')}"


WATCHED = "LATERAL VIEW OUTER inline(rows_watched(o.user)) w AS user, tier"
SITES = "LATERAL VIEW inline(rows_my_sites(w.tier + 1)) sites AS id, `a b`"


@pytest.mark.parametrize(
    ("written", "becomes", "functions"),
    [
        (
            "SELECT id FROM orders WHERE dynamic_table_check('watched', upper(user))",
            "SELECT id FROM orders WHERE check_watched(upper(user))",
            {("check", "watched")},
        ),
        ("SELECT o.id FROM orders o LEFT JOIN watched w ON o.user = w.user", f"SELECT o.id FROM orders o {WATCHED}", {("rows", "watched")}),
        (
            "SELECT o.id FROM orders o LEFT OUTER JOIN watched AS W ON w.USER = o.user",
            f"SELECT o.id FROM orders o {WATCHED}",
            {("rows", "watched")},
        ),
        (
            "SELECT * FROM orders o LEFT JOIN watched w ON o.user = w.user JOIN my.sites ON sites.id = w.tier + 1",
            f"SELECT * FROM orders o {WATCHED} {SITES}",
            {("rows", "watched"), ("rows", "my.sites")},
        ),
        ("WITH watched AS (SELECT 1 AS user) SELECT * FROM orders o JOIN watched w ON o.user = w.user", None, set()),
        ("SELECT * FROM orders o RIGHT JOIN watched w ON o.user = w.user", None, set()),
        ("SELECT * FROM orders o JOIN watched w ON o.user = w.tier", None, set()),
        ("SELECT dynamic_table_check('nosuch', 1) AS x, dynamic_table_check(a, b) AS y FROM orders", None, set()),
    ],
)
def test_a_lookup_becomes_a_function(bridge: Bridge, written: str, becomes: str | None, functions: set) -> None:
    plan = names.parse(bridge, written)
    found = look_up(bridge, plan, TABLES, name)
    assert found.functions == functions
    expected = plan if becomes is None else names.parse(bridge, becomes)
    assert shape(found.plan) == shape(expected)


def shape(plan: Any) -> str:
    """A plan without the numbers of its columns."""
    return re.sub(r"#\d+", "", str(plan))


def test_a_column_without_a_name_is_called_as_in_sql(bridge: Bridge) -> None:
    text = "SELECT dynamic_table_get('watched', user).tier, dynamic_table_check('watched', user) FROM orders"
    plan = look_up(bridge, names.parse(bridge, text), TABLES, name).plan
    assert [item.name() for item in bridge.items(plan.projectList())] == ["tier", "dynamic_table_check('watched', user)"]


def test_nothing_is_looked_for_without_tables(bridge: Bridge) -> None:
    plan = names.parse(bridge, "SELECT dynamic_table_check('watched', user) AS x FROM orders")
    assert look_up(bridge, plan, {}, name).plan is plan
