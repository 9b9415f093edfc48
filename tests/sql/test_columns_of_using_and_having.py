"""Unknown columns in USING and HAVING are found without Spark."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked


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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t JOIN u USING (ID)",
        "SELECT t.v FROM t LEFT SEMI JOIN u USING (id)",
        "SELECT t.v FROM t JOIN u ON t.id = u.id JOIN (SELECT id, w FROM u) z USING (w)",
        "SELECT t.v FROM t JOIN u USING (id) JOIN (SELECT id, w FROM u) z USING (id, w)",
        "SELECT g, count(*) FROM t GROUP BY g HAVING `count(1)` > 0",
        "SELECT g AS k, count(*) AS n FROM t GROUP BY g HAVING N > 1 AND k > 'a' AND G > 'a' AND max(v) > 1",
        "SELECT box.a, count(*) AS n FROM t GROUP BY box.a HAVING a > 0",
        "SELECT g, count(*) AS n FROM t GROUP BY g HAVING exists(collect_list(v), x -> x > 1)",
    ],
)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT w.id FROM (SELECT id FROM t) w JOIN u ON w.id = u.id",
        "SELECT b.g, b.box.a FROM t b",
        "SELECT box.a, box.id FROM t box",
    ],
)
def test_a_table_may_have_the_name_of_a_column(sql: str) -> None:
    assert check(sql) == []
