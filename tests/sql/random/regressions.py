"""Cases that failed once, as the shrinker printed them."""

from __future__ import annotations

from tests.sql.random.cases import Case, Table

LIMITED = "(SELECT a, b FROM t0 ORDER BY b, a LIMIT 2) AS f"
OVER_LIMITED = {
    "a subquery over a LIMIT": f"SELECT f.a, f.b, (SELECT min(b) FROM t1) AS m FROM {LIMITED}",
    "a correlated subquery over a LIMIT": f"SELECT f.a, f.b, (SELECT min(b) FROM t1 WHERE t1.a = f.a) AS m FROM {LIMITED}",
    "IN over a LIMIT": f"SELECT f.a, f.b, f.a IN (SELECT a FROM t1) AS m FROM {LIMITED}",
    "EXISTS over a LIMIT": f"SELECT f.a, f.b, EXISTS (SELECT 1 FROM t1 WHERE t1.a = f.a) AS m FROM {LIMITED}",
    "a subquery over the order of a LIMIT": "SELECT f.a, (SELECT min(b) FROM t1) AS m FROM (SELECT a FROM t0 ORDER BY b, a) AS f LIMIT 2",
}
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
} | {
    name: Case(
        seed=1,
        query=query,
        tables=tuple(Table(name=name, columns=(("a", "bigint"), ("b", "bigint")), append_only=name == "t0") for name in ("t0", "t1")),
        epochs=(
            {"t0": (((1, 4), 1), ((2, 3), 1), ((3, 2), 1), ((4, 1), 1)), "t1": (((3, 5), 1),)},
            {"t0": (((5, 0), 1),), "t1": (((5, 6), 1), ((3, 5), -1))},
        ),
    )
    for name, query in OVER_LIMITED.items()
}
"""what was wrong → the case"""
