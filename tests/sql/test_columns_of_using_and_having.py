"""Unknown columns in USING and HAVING are found without Spark."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

NAMED_AS_COLUMNS = [
    "SELECT w.id FROM (SELECT id FROM t) w JOIN u ON w.id = u.id",
    "SELECT b.g, b.box.a FROM t b",
    "SELECT box.a, box.id FROM t box",
]

ACCEPTED = [
    "SELECT id FROM t JOIN u USING (ID)",
    "SELECT t.v FROM t LEFT SEMI JOIN u USING (id)",
    "SELECT t.v FROM t JOIN u ON t.id = u.id JOIN (SELECT id, w FROM u) z USING (w)",
    "SELECT t.v FROM t JOIN u USING (id) JOIN (SELECT id, w FROM u) z USING (id, w)",
    "SELECT g, count(*) FROM t GROUP BY g HAVING `count(1)` > 0",
    "SELECT g AS k, count(*) AS n FROM t GROUP BY g HAVING N > 1 AND k > 'a' AND G > 'a' AND max(v) > 1",
    "SELECT box.a, count(*) AS n FROM t GROUP BY box.a HAVING a > 0",
    "SELECT g, count(*) AS n FROM t GROUP BY g HAVING exists(collect_list(v), x -> x > 1)",
    "SELECT box.*, count(*) AS n FROM t GROUP BY box.a HAVING a > 1",
    "SELECT t.box.*, count(*) AS n FROM t GROUP BY box.a HAVING a > 1",
    "SELECT explode(collect_list(v)), g FROM t GROUP BY g HAVING col > 1",
    "SELECT inline(array(struct(1 AS p, 2 AS q))), g, count(*) n FROM t GROUP BY g HAVING p > 1",
    "SELECT inline(array(struct(struct(1 AS p) AS s))), g, count(*) n FROM t GROUP BY g HAVING s.p > 1",
    "SELECT box.* FROM t ORDER BY a LIMIT 3",
    "SELECT explode(arr) FROM t ORDER BY col LIMIT 3",
    "SELECT box.a FROM t ORDER BY A LIMIT 3",
    "SELECT t.G FROM t JOIN u ON t.id = u.id ORDER BY g LIMIT 3",
    "SELECT g, count(*) FROM t GROUP BY g ORDER BY `count(1)` LIMIT 3",
    "SELECT user AS x, current_user AS y, session_user AS z FROM t",
    "SELECT id FROM t WHERE user = 'a' AND current_user = 'a' AND session_user = 'a'",
    "SELECT g, count(*) AS n FROM t GROUP BY g HAVING user = 'a' AND current_user = 'a' AND session_user = 'a'",
    "SELECT i FROM u AS z(i, k, x) JOIN (SELECT id AS i FROM t) USING (i)",
    "WITH c AS (SELECT id, g FROM t) SELECT x, z.y FROM c AS z(x, y)",
    "SELECT y.a FROM (SELECT * FROM u AS z(a, b, c)) y",
    "SELECT e.arr FROM t LATERAL VIEW explode(arr) e AS arr",
    "SELECT x.id FROM t x JOIN u y ON x.id = y.id AND v = w JOIN t z ON z.id = x.id",
    "SELECT current_time AS x FROM t",
    "SELECT g, v, count(*) AS n, grouping__id AS q FROM t GROUP BY g, v WITH CUBE",
    "SELECT box.a FROM t CLUSTER BY A",
    "SELECT box.a FROM t SORT BY A",
]


@pytest.mark.parametrize(
    ("sql", "place", "help_"),
    [
        ("SELECT id FROM t JOIN u USING (idd)", "idd", "did you mean `id`?"),
        ("SELECT t.id FROM t JOIN u USING (w)", "w", ""),
        ("SELECT t.id FROM t JOIN u USING (id, v)", "v", "known: `g`, `id`, `w`"),
        ("SELECT t.g FROM t LEFT SEMI JOIN u ON t.id = u.id JOIN (SELECT w FROM u) z USING (w)", "w", ""),
        ("SELECT g, count(*) AS n FROM t GROUP BY g HAVING nn > 1", "nn", "did you mean `n`?"),
        ("SELECT g, count(*) AS n FROM t GROUP BY g HAVING max(idd) > 1", "idd", "did you mean `id`?"),
    ],
)
def test_an_unknown_column_is_found(sql: str, place: str, help_: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, marked(finding)) == ("MS024", place)
    assert help_ in finding.help


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []


def test_a_join_after_a_lateral_view_is_left_to_spark() -> None:
    """Its grammar has no such join, so this query is not among those that it accepts."""
    assert check("SELECT t.id FROM t LATERAL VIEW explode(arr) e AS w JOIN u USING (w)") == []


@pytest.mark.parametrize("sql", NAMED_AS_COLUMNS)
def test_a_table_may_have_the_name_of_a_column(sql: str) -> None:
    assert check(sql) == []
