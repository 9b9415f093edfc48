"""Cases that failed once, as the shrinker printed them."""

from __future__ import annotations

from tests.sql.random.cases import Case, Table

CASES: dict[str, Case] = {
    "a subquery in the results of an aggregate that is computed again": Case(
        seed=15,
        query="SELECT a10.c8 AS c13, (SELECT NOT (NULL) FROM t1 AS a11) AS c15 FROM (SELECT a6.c5 AS c7, MAX(a6.c2) AS c8 FROM "
        "(SELECT 1 AS c2, MAX(a1.b) AS c5 FROM t1 AS a1) AS a6 GROUP BY 1) AS a10",
        tables=(Table(name="t1", columns=(("a", "bigint"), ("b", "bigint"), ("c", "int"), ("d", "string")), append_only=False),),
        epochs=({"t1": ()},),
    ),
    "a subquery in the results of sums": Case(
        seed=38,
        query="WITH q AS (SELECT a.c7 AS c17, AVG(a.c9) AS c18 FROM (SELECT c AS c7, GROUPING_ID() AS c9 FROM t2 GROUP BY CUBE (c)) AS a "
        "GROUP BY 1) SELECT b.c17 AS c23, b.c18 AS c24, (SELECT BOOL_OR(NOT (CAST(NULL AS BIGINT) > 1)) FROM q) AS c26 FROM q AS b",
        tables=(Table(name="t2", columns=(("a", "int"), ("b", "string"), ("c", "decimal(10,2)"), ("d", "int")), append_only=False),),
        epochs=({"t2": ()},),
    ),
    "NOT IN of several columns": Case(
        seed=0,
        query="SELECT a, b FROM t0 WHERE (a, b) NOT IN (SELECT a, b FROM t1)",
        tables=tuple(Table(name=name, columns=(("a", "bigint"), ("b", "bigint")), append_only=False) for name in ("t0", "t1")),
        epochs=(
            {"t0": (((1, 2), 1), ((1, None), 1), ((3, 4), 1)), "t1": (((1, 5), 1),)},
            {"t0": (), "t1": (((None, 2), 1), ((3, 4), 1))},
        ),
    ),
    "a correlated NOT IN": Case(
        seed=0,
        query="SELECT a, b FROM t0 WHERE a NOT IN (SELECT a FROM t1 WHERE t1.b = t0.b)",
        tables=tuple(Table(name=name, columns=(("a", "bigint"), ("b", "bigint")), append_only=False) for name in ("t0", "t1")),
        epochs=(
            {"t0": (((1, 2), 1), ((None, 2), 1), ((None, 3), 1)), "t1": (((5, 2), 1),)},
            {"t0": (), "t1": (((None, 2), 1), ((5, 2), -1))},
        ),
    ),
}
"""what was wrong → the case"""
