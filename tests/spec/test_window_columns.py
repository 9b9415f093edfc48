"""A query that groups by a window may read the window's edges by its name, as Spark lets it."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {{type: memory, schema: {{user: string, amount: float64, at: timestamp}}, rows: [], event_time: {{column: at, watermark: 1s}}}}
transforms:
  tiers: {{type: dynamic_table, backend: memory, key: user, columns: {{tier: string}}}}
  per: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: print, from: per}}
"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window.start, window.end AS until, sum(amount) AS total FROM orders GROUP BY window(at, '1 minute')",
        "SELECT session_window.start, user, count(*) AS n FROM orders GROUP BY session_window(at, '5 minutes'), user",
        "SELECT window.start, t.tier FROM orders o LEFT JOIN tiers t ON o.user = t.user GROUP BY window(at, '1 minute'), t.tier",
    ],
)
def test_edges_of_the_window_are_columns(sql: str) -> None:
    assert not loads(PIPELINE.format(sql=sql)).errors


@pytest.mark.parametrize(
    "sql", ["SELECT window.start FROM orders", "SELECT session_window.start, count(*) AS n FROM orders GROUP BY window(at, '1 minute')"]
)
def test_without_that_window_they_are_unknown(sql: str) -> None:
    assert [found.code for found in loads(PIPELINE.format(sql=sql)).errors] == ["MS024"]
