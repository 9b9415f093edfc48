"""A mistake inside an option is one finding, with the option's name and the nearest fix."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {{type: memory, rows: [{{id: 1, at: 2024-01-01}}], event_time: {{column: at{time}}}}}
transforms:
  wide: {{type: window, from: orders, window: {{type: tumbling, {size}: 1m}}, aggregate: {{n: count(*)}}}}
sinks:
  out: {{type: print, from: wide, on_error: {error}}}
settings: {{restart: {restart}}}
"""
RIGHT = {"time": ", watermark: 1s", "size": "size", "error": "drop", "restart": "{limit: 3}"}


@pytest.mark.parametrize(
    ("wrong", "message", "help_"),
    [
        ({"time": ", watermak: 1s"}, "unknown field `watermak` in `event_time` of source `orders`", "did you mean `watermark`?"),
        ({"time": ", delay: 1s"}, "unknown field `delay` in `event_time` of source `orders`", "known: `column`, "),
        ({"size": "sise"}, "unknown field `sise` in `window` of transform `wide`", "did you mean `size`?"),
        ({"error": "{dead_leter: x}"}, "unknown field `dead_leter` in `on_error` of sink `out`", "did you mean `dead_letter`?"),
        ({"error": "dorp"}, "`on_error` in sink `out` cannot be `dorp`", "did you mean `drop`?"),
        ({"error": "5"}, "`on_error` in sink `out` cannot be `5`", "known: `drop`, `fail`"),
        ({"restart": "{limt: 3}"}, "unknown field `limt` in `restart` of settings", "did you mean `limit`?"),
    ],
)
def test_one_mistake_is_one_finding(wrong: dict[str, str], message: str, help_: str) -> None:
    (found,) = loads(PIPELINE.format(**(RIGHT | wrong))).errors
    assert found.message == message
    assert found.help.startswith(help_)
    assert found.span is not None


def test_a_dynamic_table_with_a_mistake_is_not_taken_for_a_stream() -> None:
    broken = "tiers: {type: dynamic_table, backend: memory, keys: id, columns: {tier: string}}"
    query = 'named: {type: sql, sql: "SELECT o.id, t.tier FROM orders o LEFT JOIN tiers t ON o.id = t.id"}'
    text = PIPELINE.format(**RIGHT).replace("transforms:\n", f"transforms:\n  {broken}\n  {query}\n")
    assert [found.message for found in loads(text).errors] == ["unknown field `keys` in transform `tiers`"]


def test_without_mistakes_there_is_nothing_to_tell() -> None:
    assert not loads(PIPELINE.format(**RIGHT)).errors
