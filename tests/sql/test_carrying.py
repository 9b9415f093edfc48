"""What SQL over a changelog becomes: the columns that travel by themselves, and conditions that take old rows back."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from millstream.plan import types
from millstream.sql.catalyst import names
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.changelog import carry
from millstream.transforms.sql import Sql

CHANGES = {"t": ("_op", "_seq"), "raw.t": ("_op",), "plain": ()}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM t", "SELECT id , t._op AS _op, t._seq AS _seq FROM t"),
        ("SELECT * FROM t", "SELECT * FROM t"),
        ("SELECT id, _op FROM t", "SELECT id, _op , t._seq AS _seq FROM t"),
        ("SELECT id FROM plain WHERE a > 1", "SELECT id FROM plain WHERE a > 1"),
        ("SELECT x.id FROM raw.t x", "SELECT x.id , x._op AS _op FROM raw.t x"),
        (
            "SELECT id FROM raw.t WHERE a > 1 AND b IN (1)",
            (
                "SELECT id , CASE WHEN raw.t._op = 'u' AND NOT coalesce((a > 1 AND b IN (1)), false) THEN 'd' ELSE raw.t._op END AS _op "
                "FROM raw.t WHERE ((a > 1 AND b IN (1)) OR raw.t._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT *, a FROM raw.t WHERE a",
            (
                "SELECT * EXCEPT (_op), a , CASE WHEN raw.t._op = 'u' AND NOT coalesce((a), false) THEN 'd' ELSE raw.t._op END AS _op "
                "FROM raw.t WHERE ((a) OR raw.t._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT x.* FROM raw.t x UNION ALL SELECT a, * FROM raw.t",
            "SELECT x.* EXCEPT (_op) , x._op AS _op FROM raw.t x UNION ALL SELECT a, * EXCEPT (_op) , raw.t._op AS _op FROM raw.t",
        ),
        ("SELECT id FROM raw.t WHERE _op <> 'd'", "SELECT id , raw.t._op AS _op FROM raw.t WHERE _op <> 'd'"),
        ("SELECT * FROM raw.t WHERE _op <> 'd'", "SELECT * FROM raw.t WHERE _op <> 'd'"),
        (
            "SELECT id FROM raw.t UNION ALL SELECT id FROM plain",
            "SELECT id , raw.t._op AS _op FROM raw.t UNION ALL SELECT id , 'i' AS _op FROM plain",
        ),
        (
            "SELECT * FROM raw.t UNION ALL SELECT * FROM plain",
            "SELECT * EXCEPT (_op) , raw.t._op AS _op FROM raw.t UNION ALL SELECT * , 'i' AS _op FROM plain",
        ),
        (
            "WITH c AS (SELECT id, v FROM raw.t) SELECT id FROM c",
            "WITH c AS (SELECT id, v , raw.t._op AS _op FROM raw.t) SELECT id , c._op AS _op FROM c",
        ),
        (
            "SELECT q.id FROM (SELECT id FROM raw.t) q",
            "SELECT q.id , q._op AS _op FROM (SELECT id , raw.t._op AS _op FROM raw.t) q",
        ),
        ("SELECT count(*) FROM t", "SELECT count(*) FROM t"),
        (
            "SELECT id, count_if(_op = 'i') AS n FROM raw.t WHERE a GROUP BY id",
            "SELECT id, count_if(_op = 'i') AS n FROM raw.t WHERE a GROUP BY id",
        ),
        (
            "SELECT id, max(_op) AS n FROM (SELECT id FROM raw.t) q WHERE a GROUP BY id",
            "SELECT id, max(_op) AS n FROM (SELECT id, raw.t._op AS _op FROM raw.t) q WHERE a GROUP BY id",
        ),
        ("SELECT DISTINCT id FROM t", "SELECT DISTINCT id FROM t"),
        (
            "SELECT id FROM t WHERE a",
            (
                "SELECT id , CASE WHEN t._op = 'u' AND NOT coalesce((a), false) THEN 'd' ELSE t._op END AS _op, t._seq AS _seq "
                "FROM t WHERE ((a) OR t._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT id FROM plain UNION ALL SELECT id FROM t",
            "SELECT id , 'i' AS _op, CAST(NULL AS BIGINT) AS _seq FROM plain UNION ALL SELECT id , t._op AS _op, t._seq AS _seq FROM t",
        ),
        ("SELECT p.id FROM plain p JOIN raw.t x ON p.id = x.id", "SELECT p.id , x._op AS _op FROM plain p JOIN raw.t x ON p.id = x.id"),
        (
            "SELECT p.id FROM plain p JOIN (SELECT id FROM raw.t) q ON p.id = q.id",
            "SELECT p.id , q._op AS _op FROM plain p JOIN (SELECT id , raw.t._op AS _op FROM raw.t) q ON p.id = q.id",
        ),
        ("SELECT id, 'd' AS _op FROM raw.t WHERE a > 1", "SELECT id, 'd' AS _op FROM raw.t WHERE a > 1"),
        (
            "TABLE raw.t UNION ALL VALUES (1)",
            "SELECT * EXCEPT (_op), raw.t._op AS _op FROM raw.t UNION ALL SELECT *, 'i' AS _op FROM VALUES (1)",
        ),
        (
            "FROM raw.t |> WHERE a > 1",
            (
                "SELECT *, CASE WHEN raw.t._op = 'u' AND NOT coalesce((a > 1), false) THEN 'd' ELSE raw.t._op END AS _op "
                "FROM raw.t WHERE ((a > 1) OR raw.t._op IN ('u', 'd'))"
            ),
        ),
        ("SELECT a*2 AS b FROM raw.t", "SELECT a*2 AS b , raw.t._op AS _op FROM raw.t"),
    ],
)
def test_what_spark_analyses(spark: Any, text: str, expected: str) -> None:
    bridge = Bridge(spark)
    found = carry(bridge, names.parse(bridge, text), CHANGES)
    assert found.understood
    assert shape(found.plan) == shape(names.parse(bridge, expected))


def shape(plan: Any) -> str:
    """A plan without numbers and without what only marks pipe syntax."""
    lines = [re.sub(r"#\d+L?|(?<=CTERelation...) \d+", "", line) for line in str(plan).splitlines() if "PipeOperator" not in line]
    return "\n".join(line.lstrip(" +-:") for line in lines)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t UNPIVOT (v FOR n IN (a, b))",
        "WITH RECURSIVE r(id) AS (SELECT id FROM t UNION ALL SELECT id + 1 FROM r WHERE id < 3) SELECT * FROM r",
    ],
)
def test_a_step_that_is_not_known_is_told(spark: Any, text: str) -> None:
    bridge = Bridge(spark)
    assert not carry(bridge, names.parse(bridge, text), CHANGES).understood


ROWS = types.schema({"id": "int64", "v": "int64", "_op": "string", "_seq": "int64"})


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT id FROM t", ["id", "_op", "_seq"]),
        ("SELECT _seq, id FROM t WHERE v > 1", ["_seq", "id", "_op"]),
        ("SELECT *, v + 1 AS w FROM t", ["id", "v", "_op", "_seq", "w"]),
        ("SELECT *, v + 1 AS w FROM t WHERE v > 1", ["id", "v", "w", "_op", "_seq"]),
        ("SELECT id, v FROM plain UNION ALL SELECT id, v FROM t", ["id", "v", "_op", "_seq"]),
        ("WITH t AS (SELECT id FROM t WHERE v > 1) SELECT id AS k FROM t", ["k", "_op", "_seq"]),
        ("SELECT id FROM plain", ["id"]),
    ],
)
def test_the_columns_are_known_without_spark(sql: str, columns: list[str]) -> None:
    schemas: dict[str, pa.Schema | None] = {"t": ROWS, "plain": types.schema({"id": "int64", "v": "int64"})}
    found = Sql(sql=sql).output(schemas)
    assert found is not None and found.names == columns
