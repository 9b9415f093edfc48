"""One bad row does not spoil the others: it comes out as a reject, with its input and the part that failed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from millstream.errors import RunError
from millstream.plan.components import Transform
from millstream.transforms.drop import Drop
from millstream.transforms.filter import Filter
from millstream.transforms.select import Select
from millstream.transforms.sql import Sql
from millstream.transforms.with_columns import WithColumns

pytestmark = pytest.mark.spark
# made from `range`: rows that are written out would be computed by the optimizer, in a way of its own
ROWS = """SELECT get(array(1, 0, 2, NULL, 4), CAST(id AS int)) AS a, get(array('5', '7', 'bad', NULL, '9'), CAST(id AS int)) AS t
          FROM range(0, 5, 1, 1)"""


def split(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[tuple[dict[str, Any], str]]]:
    good = [{name: value for name, value in row.items() if name != "_reject"} for row in rows if row["_reject"] is None]
    bad = [(json.loads(row["_reject"]["raw"]), row["_reject"]["error"]) for row in rows if row["_reject"] is not None]
    return good, bad


@pytest.mark.parametrize(
    ("transform", "good", "bad"),
    [
        pytest.param(Sql(sql="SELECT a, CAST(t AS int) AS n FROM rows"), [1, 0, None, 4], [2], id="a cast"),
        pytest.param(Sql(sql="SELECT a, 10 / a AS n FROM rows"), [1, 2, None, 4], [0], id="a division"),
        pytest.param(Sql(sql="SELECT a, CAST(a + 2147483644 AS int) AS n FROM rows"), [1, 0, 2, None], [4], id="an overflow"),
        pytest.param(Sql(sql="SELECT a, 10 / a AS n, 10 / a + 1 AS m FROM rows"), [1, 2, None, 4], [0], id="a part used twice"),
        pytest.param(Sql(sql="SELECT a FROM rows WHERE 8 / a > 2"), [1, 2], [0], id="a condition"),
        pytest.param(Sql(sql="SELECT a FROM rows WHERE 8 / a > 2 AND 8 / a < 8"), [2], [0], id="a condition's part used twice"),
        pytest.param(Sql(sql="SELECT a, CAST(t AS int) AS n FROM rows WHERE a <> 2"), [1, 0, 4], [], id="only rows that pass"),
        pytest.param(Sql(sql="SELECT *, CAST(t AS int) AS n FROM rows AS r WHERE r.a > 0"), [1, 4], [2], id="a star and an alias"),
        pytest.param(Filter(where="8 / a > 2"), [1, 2], [0], id="filter"),
        pytest.param(Select(columns={"a": "a", "n": "CAST(t AS int)"}), [1, 0, None, 4], [2], id="select"),
        pytest.param(WithColumns(columns={"t": "CAST(t AS int)"}), [1, 0, None, 4], [2], id="with_columns"),
        pytest.param(Drop(columns="t"), [1, 0, 2, None, 4], [], id="drop"),
    ],
)
def test_bad_rows_are_told_apart(result: Callable, transform: Transform, good: list, bad: list) -> None:
    fine, rejected = split(result(transform, isolate=True, rows=ROWS))
    assert [row["a"] for row in fine] == good
    assert [raw["a"] for raw, _ in rejected] == bad
    assert transform.refuses_isolation() == ""


@pytest.mark.parametrize("mode", ["CODEGEN_ONLY", "NO_CODEGEN"])
def test_it_holds_however_spark_computes(spark: Any, result: Callable, mode: str) -> None:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", mode)
    try:
        query = Sql(sql="SELECT a, 10 / a AS n, 10 / a + 1 AS m, CAST(t AS int) AS i FROM rows WHERE 8 / a > 1 OR 8 / a < 0 OR a IS NULL")
        fine, rejected = split(result(query, isolate=True, rows=ROWS))
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
        spark.conf.unset("spark.sql.codegen.factoryMode")
    assert [row["a"] for row in fine] == [1, None, 4]
    assert [raw["a"] for raw, _ in rejected] == [0, 2]


def test_a_reject_holds_the_whole_input_and_names_what_failed(result: Callable) -> None:
    query = Sql(sql="SELECT a, CAST(t AS int) AS n, 10 / a AS q FROM rows WHERE a IS NOT NULL")
    rows = result(query, isolate=True, rows=ROWS)
    _, rejected = split(rows)
    assert rejected == [
        ({"a": 0, "t": "7"}, "`q`: (CAST(10 AS DOUBLE) / CAST(rows.a AS DOUBLE)) failed on this row"),
        ({"a": 2, "t": "bad"}, "`n`: CAST(rows.t AS INT) failed on this row"),
    ]
    assert all(row["n"] is None and row["a"] is None for row in rows if row["_reject"])


def test_a_null_is_not_a_failure(result: Callable) -> None:
    fine, rejected = split(result(Sql(sql="SELECT CAST(NULL AS int) AS a, t || 'x' AS t FROM rows"), isolate=True, rows=ROWS))
    assert (len(fine), rejected) == (5, [])


def test_without_isolation_the_row_fails_the_run(result: Callable) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        result(Sql(sql="SELECT 10 / a AS n FROM rows"), rows=ROWS)


def test_a_bare_try_would_let_shared_parts_escape(spark: Any) -> None:
    """What the opaque condition is for: without it Spark computes `10 / a` ahead of the try."""
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import Column

    utils = spark._jvm.org.apache.spark.sql.classic.ExpressionUtils
    row = F.struct(F.expr("10 / a").alias("n"), F.expr("10 / a + 1").alias("m"))
    tried = Column(utils.column(spark._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utils.expression(row._jc))))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(ROWS).select(tried.alias("x")).collect()


def test_columns_made_of_each_other_are_refused(result: Callable) -> None:
    with pytest.raises(RunError, match="MS032"):
        result(Sql(sql="SELECT a + 1 AS b, b * 2 AS c FROM rows"), isolate=True, rows=ROWS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT explode(array(a)) AS x FROM rows",
        "SELECT x FROM rows LATERAL VIEW explode(array(a)) AS x",
        "WITH w AS (SELECT a FROM rows) SELECT a FROM w",
        "SELECT a FROM rows UNION ALL SELECT a FROM rows",
        "SELECT a FROM (SELECT a FROM rows)",
        "SELECT a FROM one, two",
    ],
)
def test_queries_of_another_shape_are_refused_beforehand(query: str) -> None:
    assert "isolated" in Sql(sql=query).refuses_isolation()
