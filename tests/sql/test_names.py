"""Tables of a query are bound in Spark's parsed plan, and the text reaches Spark as it was written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext
from millstream.sql.analysed import plans
from millstream.transforms.sql import Sql

pytestmark = pytest.mark.spark
ROWS = "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, name)"


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Callable[..., Any]:
    """The frame of a query over tables: `query("SELECT …", {"raw.orders": "SELECT …"})`."""

    def go(text: str, tables: dict[str, str], recorded: list[str] | None = None) -> Any:
        record = (recorded if recorded is not None else []).append
        context = NodeContext("step", tmp_path, LocalStorage(tmp_path), record_sql=record)
        return Sql(sql=text).open(context).apply({name: spark.sql(rows) for name, rows in tables.items()}, context)

    return go


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT raw.orders.id FROM raw.orders",
        "SELECT orders.id FROM raw.orders",
        "SELECT id FROM raw.orders",
        "SELECT o.id FROM raw.orders o",
        "SELECT o.i FROM raw.orders AS o(i, n)",
        "SELECT `raw.orders`.id FROM `raw.orders`",
        "SELECT id FROM Raw.Orders",
        "FROM raw.orders |> SELECT orders.id",
        "SELECT /* FROM nosuch */ id FROM raw.orders -- FROM nosuch",
    ],
)
def test_a_name_with_dots_qualifies_columns_in_full_or_by_its_last_part(query: Callable, text: str) -> None:
    assert rows(query(text, {"raw.orders": ROWS})) == [(1,), (2,)]


def test_four_parts_are_a_name_too(query: Callable) -> None:
    assert rows(query("SELECT a.b.c.d.id + d.id FROM a.b.c.d", {"a.b.c.d": ROWS})) == [(2,), (4,)]


def test_a_table_can_be_read_twice(query: Callable) -> None:
    assert rows(query("SELECT id FROM t WHERE id > 1 UNION ALL SELECT u.id + 10 FROM t u", {"t": ROWS})) == [(2,), (11,), (12,)]


def test_a_definition_wins_over_a_node_of_its_name(query: Callable) -> None:
    assert rows(query("WITH t AS (SELECT 9 AS id) SELECT id FROM t", {"t": ROWS})) == [(9,)]
    assert rows(query("WITH t AS (SELECT id + 10 AS id FROM t) SELECT id FROM t", {"t": ROWS})) == [(11,), (12,)]
    assert rows(query("WITH orders AS (SELECT 9 AS id) SELECT raw.orders.id FROM raw.orders", {"raw.orders": ROWS})) == [(1,), (2,)]


def test_the_text_is_recorded_as_it_was_written(query: Callable) -> None:
    recorded: list[str] = []
    text = "SELECT  orders.id,\n  now() AS at\nFROM raw.orders"
    query(text, {"raw.orders": ROWS}, recorded)
    assert recorded == [text]


@pytest.mark.parametrize(
    ("text", "place"), [("SELECT id,\n  nosuch FROM raw.orders", "line 2 pos 2"), ("SELECT id FROM raw.orders WHERE )", "line 1, pos 32")]
)
def test_spark_gives_places_in_the_users_text(query: Callable, text: str, place: str) -> None:
    with pytest.raises(Exception, match=place):
        query(text, {"raw.orders": ROWS})


def test_where_the_query_ends_is_found_in_the_plan(query: Callable) -> None:
    plan = plans.analysed_plan(query("SELECT orders.id FROM raw.orders WHERE id > 1", {"raw.orders": ROWS}))
    while not plans.input_name(plan):
        (plan,) = plans.children(plan)
    assert plans.names(plan) == ["id", "name"]
