"""Queries that are combined have the same number of columns, and a subquery that stands for a value has one."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

ACCEPTED = [
    "SELECT id, g FROM t UNION ALL VALUES (1, 'a')",
    "SELECT id, inline(array(box)) FROM t UNION ALL SELECT id, w FROM u",
    "SELECT id, posexplode(arr) FROM t UNION ALL SELECT id, id, w FROM u",
    "SELECT id, posexplode(arr) AS (a, b) FROM t UNION ALL SELECT id, id, w FROM u",
    "SELECT id, stack(1, 2, 3) FROM t UNION ALL SELECT id, id, w FROM u",
    "SELECT id, g, v FROM t UNION ALL SELECT * FROM u",
    "SELECT t.box.* FROM t UNION ALL SELECT id FROM u",
    "SELECT id FROM t WHERE id IN (SELECT id FROM u UNION SELECT w FROM u)",
    "SELECT id FROM t WHERE (id, v) IN (SELECT id, w FROM u)",
    "SELECT id FROM t WHERE ((id, v)) IN (SELECT id, w FROM u)",
    "SELECT id FROM t WHERE struct(id, v) IN (SELECT id, w FROM u)",
    "SELECT id FROM t WHERE EXISTS (SELECT id, w FROM u)",
    "SELECT id FROM t WHERE id IN ((SELECT max(id) FROM u), 3)",
    "SELECT id, (SELECT max(w) FROM u) AS m FROM t WHERE v > (SELECT min(w) FROM u)",
    "SELECT x.id FROM (SELECT id, g FROM t) x JOIN (SELECT id, w FROM u) y ON x.id = y.id",
    "(SELECT id, g FROM t)",
]


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("SELECT id, g FROM t UNION ALL SELECT w FROM u", "w", "the queries that UNION combines have 2 columns and 1 column"),
        ("SELECT id FROM t UNION SELECT id FROM u UNION SELECT u.w, g FROM u", "w", "have 1 column and 2 columns"),
        ("(SELECT id, g FROM t) UNION ALL (SELECT w FROM u)", "w", "have 2 columns and 1 column"),
        ("SELECT id FROM t INTERSECT SELECT w, g FROM u", "w", "INTERSECT"),
        ("SELECT id FROM t EXCEPT SELECT w, g FROM u", "w", "EXCEPT"),
        ("SELECT id, (SELECT id, w FROM u LIMIT 1) AS x FROM t", "w", "a subquery that stands for one value has 2 columns"),
        ("SELECT id FROM t WHERE id = (SELECT max(id), max(w) FROM u)", "max", "a subquery that stands for one value has 2 columns"),
        ("SELECT id FROM t WHERE id IN (SELECT g, w FROM u)", "g", "IN compares 1 value with 2 columns"),
        ("SELECT id FROM t WHERE id NOT IN (SELECT g, w FROM u)", "g", "IN compares 1 value with 2 columns"),
        ("SELECT id FROM t WHERE (id, v) IN (SELECT w FROM u)", "w", "IN compares 2 values with 1 column"),
    ],
)
def test_another_number_of_columns_is_found(sql: str, place: str, message: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, marked(finding)) == ("MS181", place)
    assert message in finding.message
    assert finding.help


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []
