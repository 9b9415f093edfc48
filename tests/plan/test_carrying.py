"""What SQL over a changelog becomes: the columns that travel by themselves, and conditions that take old rows back."""

from __future__ import annotations

import pytest

from millstream.sql.rewrites.changelog import carrying

CHANGES = {"t": ("_op", "_seq"), "raw.t": ("_op",), "plain": ()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM t", "SELECT id , `t`._op AS _op, `t`._seq AS _seq FROM t"),
        ("SELECT * FROM t", "SELECT * FROM t"),
        ("SELECT id, _op FROM t", "SELECT id, _op , `t`._seq AS _seq FROM t"),
        ("SELECT id FROM plain WHERE a > 1", "SELECT id FROM plain WHERE a > 1"),
        ("SELECT x.id FROM raw.t x", "SELECT x.id , `x`._op AS _op FROM raw.t x"),
        (
            "SELECT id FROM raw.t WHERE a > 1 AND b IN (1)",
            (
                "SELECT id , CASE WHEN `t`._op = 'u' AND NOT coalesce((a > 1 AND b IN (1)), false) THEN 'd' ELSE `t`._op END AS _op "
                "FROM raw.t WHERE ((a > 1 AND b IN (1)) OR `t`._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT *, a FROM raw.t WHERE a",
            (
                "SELECT * EXCEPT (_op), a , CASE WHEN `t`._op = 'u' AND NOT coalesce((a), false) THEN 'd' ELSE `t`._op END AS _op "
                "FROM raw.t WHERE ((a) OR `t`._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT x.* FROM raw.t x UNION ALL SELECT a, * FROM raw.t",
            "SELECT x.* EXCEPT (_op) , `x`._op AS _op FROM raw.t x UNION ALL SELECT a, * EXCEPT (_op) , `t`._op AS _op FROM raw.t",
        ),
        ("SELECT id FROM raw.t WHERE _op <> 'd'", "SELECT id , `t`._op AS _op FROM raw.t WHERE _op <> 'd'"),
        ("SELECT * FROM raw.t WHERE _op <> 'd'", "SELECT * FROM raw.t WHERE _op <> 'd'"),
        (
            "SELECT id FROM raw.t UNION ALL SELECT id FROM plain",
            "SELECT id , `t`._op AS _op FROM raw.t UNION ALL SELECT id , 'i' AS _op FROM plain",
        ),
        (
            "SELECT * FROM raw.t UNION ALL SELECT * FROM plain",
            "SELECT * EXCEPT (_op) , `t`._op AS _op FROM raw.t UNION ALL SELECT * , 'i' AS _op FROM plain",
        ),
        (
            "WITH c AS (SELECT id, v FROM raw.t) SELECT id FROM c",
            "WITH c AS (SELECT id, v , `t`._op AS _op FROM raw.t) SELECT id , `c`._op AS _op FROM c",
        ),
        (
            "SELECT q.id FROM (SELECT id FROM raw.t) q",
            "SELECT q.id , `q`._op AS _op FROM (SELECT id , `t`._op AS _op FROM raw.t) q",
        ),
        ("SELECT count(*) FROM t", "SELECT count(*) FROM t"),
        ("SELECT DISTINCT id FROM t", "SELECT DISTINCT id FROM t"),
        (
            "SELECT id FROM t WHERE a",
            (
                "SELECT id , CASE WHEN `t`._op = 'u' AND NOT coalesce((a), false) THEN 'd' ELSE `t`._op END AS _op, `t`._seq AS _seq "
                "FROM t WHERE ((a) OR `t`._op IN ('u', 'd')) "
            ),
        ),
        (
            "SELECT id FROM plain UNION ALL SELECT id FROM t",
            "SELECT id , 'i' AS _op, CAST(NULL AS BIGINT) AS _seq FROM plain UNION ALL SELECT id , `t`._op AS _op, `t`._seq AS _seq FROM t",
        ),
        ("SELECT p.id FROM plain p JOIN raw.t x ON p.id = x.id", "SELECT p.id , `x`._op AS _op FROM plain p JOIN raw.t x ON p.id = x.id"),
        (
            "SELECT p.id FROM plain p JOIN (SELECT id FROM raw.t) q ON p.id = q.id",
            "SELECT p.id , `q`._op AS _op FROM plain p JOIN (SELECT id , `t`._op AS _op FROM raw.t) q ON p.id = q.id",
        ),
        ("SELECT id, 'd' AS _op FROM raw.t WHERE a > 1", "SELECT id, 'd' AS _op FROM raw.t WHERE a > 1"),
        ("SELECT a*2 AS b FROM raw.t", "SELECT a*2 AS b , `t`._op AS _op FROM raw.t"),
    ],
)
def test_what_reaches_spark(text: str, expected: str) -> None:
    assert carrying(text, CHANGES) == expected
