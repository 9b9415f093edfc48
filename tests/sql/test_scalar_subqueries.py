"""The place of a scalar subquery that may return several rows, for the message when it does."""

from __future__ import annotations

import pytest

from millstream.sql.check.query import parse_query
from millstream.sql.check.scalar_subqueries import places_of_scalars


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT id, (SELECT w FROM u) AS w FROM t", ["(SELECT w FROM u)"]),
        ("SELECT id FROM t WHERE v > (\n  SELECT (w) FROM u WHERE w > 0)", ["("]),
        ("SELECT v + (SELECT w FROM u) FROM t WHERE v > (SELECT w FROM u)", ["(SELECT w FROM u)", "(SELECT w FROM u)"]),
        ("SELECT id, (SELECT max(w) FROM u) AS m FROM t", []),
        ("SELECT id, (SELECT w FROM u LIMIT 1) AS m FROM t", []),
        ("SELECT id FROM (SELECT id FROM t) WHERE id IN (SELECT id FROM u) AND EXISTS (SELECT 1 FROM u)", []),
    ],
)
def test_the_place_is_the_brackets(sql: str, marked: list[str]) -> None:
    assert [sql[place.start : place.end] for place in places_of_scalars(parse_query(sql))] == marked
