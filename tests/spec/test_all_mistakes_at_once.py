"""A node with one bad option is still checked for everything else: all mistakes of a file are told at once."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {{type: memory, rows: [{{id: 1, amount: 5}}]{source}}}
transforms:
  large:
    type: sql
    sql: SELECT id, amont FROM orders
{transform}
  small:
    type: sql
    sql: SELECT id, amount FROM orders
{transform}
sinks:
  out: {{type: file, from: small, path: out, format: json, partition_by: [idd]{sink}}}
  other: {{type: print, from: large}}
"""


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ", rows_per_epok: 3"},
        {"source": ", rows_per_epoch: many"},
        {"source": ", nonsense: 3"},
        {"source": ", on_error: dorp"},
        {"source": ", telemetry: 5"},
        {"transform": "    latte: drop"},
        {"transform": "    on_error: dorp"},
        {"transform": "    allowed_lateness: soon"},
        {"sink": ", guarante: exactly_once"},
        {"sink": ", guarantee: twice"},
    ],
)
def test_columns_below_a_bad_option_are_checked(wrong: dict[str, str]) -> None:
    loaded = loads(PIPELINE.format(**({"source": "", "transform": "", "sink": ""} | wrong)))
    found = [finding.message for finding in loaded.errors]
    assert any("unknown column `amont`" in message for message in found)
    assert any("`idd`" in message for message in found)
    assert not loaded.warnings
    assert len(found) == 2 + (2 if "transform" in wrong else 1)


def test_a_pipeline_with_a_repaired_node_is_still_refused() -> None:
    assert not loads("sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {p: {type: print, from: o}}").errors
    assert loads("sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {p: {type: print, from: o, on_error: dorp}}").errors


def test_an_option_that_shapes_the_columns_leaves_them_unknown() -> None:
    text = """
sources: {o: {type: memory, rows: [{id: 1}], schema: {id: int64, name: strin}}}
transforms: {t: {type: sql, sql: "SELECT id, name FROM o"}}
sinks: {p: {type: print, from: t}}
"""
    (found,) = loads(text).errors
    assert found.code == "MS015"


def test_a_misspelt_type_is_named_and_the_rest_is_checked() -> None:
    text = """
sources: {o: {typ: memory, rows: [{id: 1}]}}
transforms: {t: {type: sql, sql: "SELECT idd FROM o"}}
sinks: {p: {type: print, from: t}}
"""
    found = loads(text).errors
    assert [(each.code, each.help) for each in found] == [("MS006", "did you mean `type`?"), ("MS024", "did you mean `id`?")]


def test_what_follows_from_a_wrong_input_is_not_told() -> None:
    loaded = loads("sources: {orders: {type: memory, rows: [{id: 1}]}}\nsinks: {p: {type: print, from: ordrs}}")
    assert [finding.code for finding in loaded.diagnostics] == ["MS012"]


def test_a_node_that_is_broken_exists() -> None:
    loaded = loads("sources: {o: {type: memry, rows: [{id: 1}]}}\nsinks: {p: {type: print, from: o, on_error: dorp}}")
    assert [finding.code for finding in loaded.diagnostics] == ["MS010", "MS008"]


def test_an_event_time_with_a_mistake_is_not_also_missing() -> None:
    text = """
sources: {o: {type: memory, rows: [{id: 1, at: "2024-01-01"}], event_time: {colum: at, watermark: 1s}}}
transforms: {t: {type: window, from: o, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}}
sinks: {p: {type: print, from: t}}
"""
    assert [finding.code for finding in loads(text).diagnostics] == ["MS006"]


def test_an_unknown_input_of_a_broken_node_is_told_too() -> None:
    text = """
sources: {raw: {type: memory, rows: [{id: 1}]}}
transforms: {v: {type: filter, from: rw, condition: id > 1}}
sinks: {p: {type: print, from: v}}
"""
    found = [(each.code, each.help) for each in loads(text).errors]
    assert found == [("MS007", ""), ("MS006", "did you mean `where`, which is missing?"), ("MS012", "did you mean `raw`?")]
