"""A route sends every row to exactly one branch; a changelog stays right in each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

TEXT = """
    sources:
      rows: {{type: memory, rows: {rows}{key}}}
    transforms:
      by: {{type: route, from: rows, routes: {routes}{more}}}
    sinks:
      a: {{type: memory, from: by.a}}
      b: {{type: memory, from: by.b}}
      rest: {{type: memory, from: by.default}}
"""
PLAIN = "[{id: 1, v: 5}, {id: 2, v: 50}, {id: 3, v: null}, {id: 4, v: 0}]"
CHANGES = """[{id: 1, v: 5, _op: i, _seq: 1}, {id: 1, v: 50, _op: u, _seq: 2}, {id: 2, v: 7, _op: i, _seq: 3},
    {id: 1, v: null, _op: u, _seq: 4}, {id: 2, v: 7, _op: d, _seq: 5}]"""


@pytest.fixture
def branches(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., dict[str, list[Any]]]:
    def go(rows: str, routes: str, more: str = "", key: str = "", sinks: str = "") -> dict[str, list[Any]]:
        text = TEXT.format(rows=rows.replace("\n", ""), routes=routes, more=more, key=key) + sinks
        topology = pipeline(text)
        run(topology)
        return {sink.name: list(sink.component.rows()) for sink in topology.sinks if hasattr(sink.component, "rows")}

    return go


def ids(found: dict[str, list[Any]]) -> dict[str, list[int]]:
    return {name: sorted(row["id"] for row in rows) for name, rows in found.items()}


def test_the_first_true_condition_wins_and_nulls_go_to_default(branches: Callable[..., Any]) -> None:
    found = branches(PLAIN, "{a: v >= 5, b: v >= 0}")
    assert ids(found) == {"a": [1, 2], "b": [4], "rest": [3]}
    assert all(set(row) == {"id", "v"} for rows in found.values() for row in rows)


def test_a_later_condition_is_not_computed_for_rows_that_an_earlier_one_took(branches: Callable[..., Any]) -> None:
    assert ids(branches(PLAIN, "{a: v = 0, b: 100 / v > 10}")) == {"a": [4], "b": [1], "rest": [2, 3]}


def test_random_conditions_lose_and_double_no_row(branches: Callable[..., Any]) -> None:
    rows = "[" + ", ".join(f"{{id: {number}}}" for number in range(60)) + "]"
    found = ids(branches(rows, "{a: rand() < 0.3, b: rand() < 0.5}"))
    assert sorted(id_ for each in found.values() for id_ in each) == list(range(60))


def test_a_bad_row_is_one_bad_row_whatever_the_branches(branches: Callable[..., Any]) -> None:
    more = ", on_error: {dead_letter: bad}"
    found = branches(PLAIN, "{a: 10 / v > 1, b: v > 20}", more, sinks="      bad: {type: memory}\n")
    assert {name: len(rows) for name, rows in found.items()} == {"a": 1, "b": 1, "rest": 1, "bad": 1}


def test_a_dead_letter_names_the_branch_whose_condition_failed(branches: Callable[..., Any]) -> None:
    more, sinks = ", on_error: {dead_letter: bad}", "      bad: {type: memory}\n"
    (bad,) = branches(PLAIN, "{a: v > 20, b: 10 / v > 1}", more, sinks=sinks)["bad"]
    assert bad["error"].startswith("`b`: ") and bad["error"].endswith(" failed on this row")
    assert "CASE" not in bad["error"] and "_route" not in bad["error"]


def test_an_update_that_moves_a_row_deletes_it_from_its_old_branch(branches: Callable[..., Any]) -> None:
    found = branches(CHANGES, "{a: v < 10, b: v >= 10}", key=", primary_key: id")
    seen = {name: sorted((row["_seq"], row["id"], row["_op"]) for row in rows) for name, rows in found.items()}
    assert seen["a"] == [(1, 1, "i"), (2, 1, "d"), (3, 2, "i"), (4, 1, "d"), (5, 2, "d")]
    assert seen["b"] == [(2, 1, "u"), (4, 1, "d"), (5, 2, "d")]
    assert seen["rest"] == [(2, 1, "d"), (4, 1, "u"), (5, 2, "d")]


def test_conditions_on_the_operation_send_each_row_to_one_branch(branches: Callable[..., Any]) -> None:
    found = branches(CHANGES, "{a: _op = 'd', b: v >= 10}")
    assert {name: sorted(row["_seq"] for row in rows) for name, rows in found.items()} == {"a": [5], "b": [2], "rest": [1, 3, 4]}
