"""Conditions that vary are refused where two queries would compute them: a row could reach two branches, or none."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

TEXT = """
sources: {{rows: {{type: memory, rows: [{{id: 1}}]}}}}
transforms:
  r: {{type: route, from: rows, routes: {{a: "{condition}"}}}}
  {more}
sinks:
  a: {{type: memory, from: r.a}}
  b: {{type: memory, from: {last}}}
"""
TOTALS = "t: {type: aggregate, from: r.default, key_by: id, aggregate: {n: count(*)}}"


@pytest.mark.parametrize("condition", ["rand() < 0.5", "now() > timestamp '2026-01-01'"])
def test_two_queries_cannot_share_a_route_that_varies(condition: str) -> None:
    (found,) = loads(TEXT.format(condition=condition, more=TOTALS, last="t")).errors
    assert found.code == "MS174" and "`rows` and `t`" in found.message


@pytest.mark.parametrize("condition", ["rand() < 0.5", "now() > timestamp '2026-01-01'"])
def test_one_query_can(condition: str) -> None:
    assert loads(TEXT.format(condition=condition, more="", last="r.default")).errors == ()


def test_a_route_that_does_not_vary_can_be_in_both() -> None:
    assert loads(TEXT.format(condition="id > 0", more=TOTALS, last="t")).errors == ()
