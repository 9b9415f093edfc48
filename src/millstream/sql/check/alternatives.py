"""Alternatives to SQL that a stream cannot compute."""

from __future__ import annotations

_INSTEAD = (
    ("HAVING", "put the condition into a query after this one: `SELECT * FROM this WHERE n > 1`"),
    (
        "LIMIT",
        "a stream has no end to count from: number the rows of a `window(…)` with ROW_NUMBER, or limit where results are read",
    ),
    ("ORDER BY", "a stream has no end to sort: sort where the results are read, or rank within a `window(…)` with ROW_NUMBER"),
    ("SORT BY", "a stream has no end to sort: sort where the results are read"),
    ("OFFSET", "a stream has no end to count from: leave rows out where the results are read"),
    ("a join of streams", "`{type: join, left: a, right: b, on: [key], within: {after: 1h}}`"),
    ("DISTINCT", "`{type: dedup, from: NODE, key: [columns], within: 1h}`, or GROUP BY with a `window(…)`"),
    ("an aggregate over an aggregate", "group both by the same `window(…)`: then the upper one has all rows of a window"),
    ("IN (SELECT", "keep the values in a `dynamic_table` that a query fills, and use `dynamic_table_check('table', value)`"),
    ("EXISTS", "keep the values in a `dynamic_table` that a query fills, and use `dynamic_table_check('table', value)`"),
    ("a subquery of a stream", "compute it by `window(…)` in a separate node, and join by that window; or keep it in a `dynamic_table`"),
    ("a window function", "group by `window(…)` first, and number its rows above it"),
)


def alternative_to(reason: str) -> str:
    """The alternative to a refused construct; empty when there is none."""
    return next((way for word, way in _INSTEAD if reason.startswith(word)), "")
