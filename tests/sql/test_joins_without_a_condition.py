"""A join without a condition pairs every row with every other one: a warning, unless the query says that it is meant."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

MEANT = [
    "SELECT t.id FROM t CROSS JOIN u",
    "SELECT t.id FROM t JOIN u ON true",
    "SELECT t.id FROM t NATURAL JOIN u",
    "SELECT t.id FROM t JOIN u USING (id)",
    "SELECT t.id FROM t JOIN u WHERE t.id = u.id",
    "SELECT t.id FROM t, u WHERE t.v > 3 AND t.id = u.id",
    "SELECT t.id FROM t JOIN (SELECT max(w) AS m FROM u)",
    "SELECT t.id, m FROM t, (SELECT max(w) AS m FROM u)",
    "WITH most AS (SELECT max(w) AS m FROM u) SELECT t.id, m FROM t JOIN most",
    "WITH most AS (SELECT max(w) AS m FROM u) SELECT t.id, m FROM most, t",
    "SELECT t.id FROM t JOIN LATERAL (SELECT w FROM u WHERE u.id = t.id)",
    "SELECT t.id, x FROM t, LATERAL explode(arr) AS e(x)",
    "SELECT t.id FROM t JOIN range(3)",
    "SELECT t.id FROM t JOIN VALUES (1) AS v(x)",
    "SELECT id FROM t LATERAL VIEW explode(arr) e AS x",
    "SELECT t.id FROM t LEFT SEMI JOIN u ON t.id = u.id",
    "WITH p AS (SELECT 5 AS o) SELECT t.id, o FROM t, p",
    "WITH p AS (VALUES (1), (2)) SELECT t.id FROM t, p",
    "WITH p AS (SELECT * FROM VALUES (1), (2) AS v(x)) SELECT t.id, x FROM t, p",
    "WITH p AS (SELECT explode(array(1, 2)) AS o) SELECT t.id, o FROM t, p",
    "WITH p AS (SELECT max(w) AS m FROM u), r AS (SELECT m + 1 AS o FROM p) SELECT t.id, o FROM t, r",
    "WITH p AS (SELECT 1 AS o UNION ALL SELECT 2) SELECT t.id, o FROM t, p",
    "SELECT t.id FROM (SELECT 1 AS o) x, t",
    "SELECT t.id FROM t, u WHERE startswith(t.g, u.g)",
    "SELECT t.id FROM t, u WHERE t.v > 3 AND contains(t.g, u.g)",
    "SELECT t.id FROM t, u WHERE equal_null(t.id, u.id)",
    "SELECT t.id FROM t JOIN u JOIN (SELECT id AS i, g AS k FROM u) z ON z.i = t.id AND z.k = u.g",
]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT t.id FROM t JOIN u", "u"),
        ("SELECT t.id FROM t INNER JOIN u AS other", "u"),
        ("SELECT t.id FROM t LEFT JOIN u WHERE t.v > 3", "u"),
        ("SELECT t.id FROM t, u", "u"),
        ("SELECT t.id FROM t, u WHERE t.v > 3", "u"),
        ("SELECT x.id FROM t x JOIN u y ON x.id = y.id JOIN u", "u"),
    ],
)
def test_a_join_without_a_condition_is_a_warning(sql: str, place: str) -> None:
    assert check(sql) == []
    (finding,) = check(sql, "warning")
    assert (finding.code, marked(finding)) == ("MS182", place)
    assert "CROSS JOIN" in finding.help


@pytest.mark.parametrize("sql", MEANT)
def test_a_join_that_is_meant_is_not(sql: str) -> None:
    assert check(sql) == []
    assert check(sql, "warning") == []
