"""A column that is neither grouped by nor aggregated is found without Spark, also where two tables have a column of that name."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

ACCEPTED = [
    "SELECT t.g, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY 1",
    "SELECT b.g, count(*) AS n FROM t a JOIN t b ON a.id = b.id GROUP BY b.g",
    "SELECT t.g AS x, u.g, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY x, u.g",
    "SELECT t.g, u.g AS h, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY ALL",
    "SELECT upper(t.g) AS x, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY upper(t.g)",
    "SELECT t.box.a, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY t.box",
    "SELECT T.g, count(*) AS n FROM t GROUP BY t.G",
    "SELECT t.g, count(*) AS n FROM t GROUP BY g",
    "SELECT g, count(*) AS n FROM t GROUP BY t.g",
    "SELECT t.g, count(*) AS n FROM t LEFT JOIN u USING (g) GROUP BY g",
    "SELECT t.g, count(*) AS n FROM t NATURAL JOIN u GROUP BY g",
    "SELECT t.g || u.g AS c, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY c",
    "SELECT t.g AS x, x || 'y' AS y, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY t.g",
    "SELECT upper('x') AS w, u.w AS y, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY w",
    "SELECT CASE WHEN t.g = 'a' THEN u.g END AS c, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY t.g, u.g",
    "SELECT t.g, sum(u.w) OVER (PARTITION BY u.g) AS s FROM t JOIN u ON t.id = u.id",
    "SELECT window.start AS s, t.g, count(*) AS n FROM t GROUP BY window(t.at, '1 hour'), t.g HAVING window.end IS NOT NULL",
    "SELECT g AS k, count(*) AS n FROM t GROUP BY g HAVING g = 'a' AND t.g = 'a' AND n > 1 AND sum(v) > 1",
    "SELECT upper(g) AS x, count(*) AS n FROM t GROUP BY upper(g) HAVING upper(g) = 'A'",
    "SELECT box.a, count(*) AS n FROM t GROUP BY box.a HAVING a > 0",
    "SELECT window.start, count(*) AS n FROM t GROUP BY window(at, '1 hour') HAVING start IS NOT NULL",
    "SELECT g, count(*) AS n FROM t GROUP BY g HAVING exists(collect_list(v), x -> x > 1)",
    "SELECT g, count(*) AS n FROM t GROUP BY g HAVING EXISTS (SELECT 1 FROM u WHERE u.g = t.g)",
    "SELECT g, count(*) AS n FROM t GROUP BY g HAVING timestampdiff(HOUR, max(at), min(at)) > 1",
    "SELECT g, count(*) n FROM t GROUP BY IDENTIFIER('g')",
    "SELECT sum(b) AS s FROM t AS z(a, c, b, q, d, e, f, h)",
    "SELECT inline(array(struct(1 AS v))), g, count(*) n FROM t GROUP BY g HAVING v > 1",
]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT t.g, u.g AS h, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY u.g", "t.g"),
        ("SELECT t.g, u.g AS h, count(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.g", "t.g"),
        ("SELECT upper(T.g) AS x, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY upper(u.g)", "T.g"),
        ("SELECT x.g, count(*) AS n FROM t x JOIN t y ON x.id = y.id GROUP BY y.g", "x.g"),
        ("SELECT a.g, count(*) AS n FROM t a JOIN t b ON a.id = b.id GROUP BY b.g", "a.g"),
        ("SELECT t.g AS g, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY u.g", "t.g"),
        ("SELECT w AS x, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY t.id", "w"),
        ("SELECT g, count(*) AS n FROM t GROUP BY g HAVING v > 1", "v"),
        ("SELECT u.g, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY u.g HAVING t.g = 'a'", "t.g"),
    ],
)
def test_a_column_of_another_table_is_not_grouped(sql: str, place: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, marked(finding)) == ("MS160", place)
    assert f"`first({place})`" in finding.help


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []
