"""Queries as Spark runs them."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext
from millstream.transforms.sql import Sql

pytestmark = pytest.mark.spark


def test_names_with_dots_and_several_inputs(spark: Any, tmp_path: Path) -> None:
    frames = {"raw.orders": spark.sql("SELECT 1 AS id, array('x', 'y') AS tags"), "b": spark.sql("SELECT 2 AS id, array('z') AS tags")}
    query = """
        WITH both AS (SELECT raw.orders.id, orders.tags FROM raw.orders UNION ALL SELECT id, tags FROM b)
        SELECT id, tag FROM both LATERAL VIEW explode(tags) AS tag
    """
    context = NodeContext("step", tmp_path, LocalStorage(tmp_path))
    rows = Sql(sql=query).open(context).apply(frames, context).collect()
    assert sorted(map(tuple, rows)) == [(1, "x"), (1, "y"), (2, "z")]


def test_now_is_the_time_of_the_epoch(result: Callable) -> None:
    query = Sql(sql="SELECT now() AS a, current_date() AS b, 'now()' AS c FROM rows")
    (row,) = result(query, clock="2026-01-02 03:04:05.678000", rows="SELECT 1 AS x")
    assert (row["a"], str(row["b"]), row["c"]) == (datetime(2026, 1, 2, 3, 4, 5, 678000), "2026-01-02", "now()")


def kept(spark: Any, frame: Any) -> bool:
    return bool(spark._jsparkSession.sharedState().cacheManager().lookupCachedData(frame._jdf).isDefined())


def test_what_is_kept_in_memory_stays_there(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT id + 41 AS id FROM range(10)").persist()
    context = NodeContext("step", tmp_path, LocalStorage(tmp_path))
    Sql(sql="SELECT id FROM rows").open(context).apply({"rows": frame}, context)
    assert kept(spark, frame)
    frame.unpersist()


def test_removing_views_as_people_do_would_throw_it_out(spark: Any) -> None:
    frame = spark.sql("SELECT id + 42 AS id FROM range(10)").persist()
    frame.createOrReplaceTempView("rows_of_test")
    spark.catalog.dropTempView("rows_of_test")
    assert not kept(spark, frame)


def test_no_view_is_left_behind(spark: Any, apply: Callable) -> None:
    apply(Sql(sql="SELECT id FROM rows"), rows="SELECT 1 AS id")
    with pytest.raises(Exception, match="nosuch"):
        apply(Sql(sql="SELECT nosuch FROM rows"), rows="SELECT 1 AS id")
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("_millstream")] == []


def test_a_column_of_a_query_that_isolates_may_have_any_name(result: Callable) -> None:
    query = Sql(sql="SELECT `a.b` AS `c.d`, `a.b` + 1 AS `select` FROM rows")
    assert result(query, isolate=True, rows="SELECT 1 AS `a.b`") == [{"c.d": 1, "select": 2, "_reject": None}]
