"""Postgres → Millstream → Postgres: after every run the copy equals the table, what passes a condition equals what Postgres says passes it,
and aggregates equal `GROUP BY`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from tests.connectors.postgres.trip import TRANSACTIONS, trip
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.catalyst import changelog

pytestmark = pytest.mark.spark
Pipeline = Callable[..., Topology]
Run = Callable[..., Report]


@settings(  # shrinking would take an hour
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, phases=[Phase.generate]
)
@given(st.lists(TRANSACTIONS, min_size=3, max_size=3))
def test_tables_are_equal_after_every_run(postgres: Database, pipeline: Pipeline, run: Run, runs: list[list[Any]]) -> None:
    assume(min(sum(len(steps) for steps, _ in transactions) for transactions in runs) > 15)  # hypothesis begins with the least
    with trip(postgres) as tables:
        topology = pipeline(tables.text(), tables.schema)
        for transactions in runs:
            tables.change(transactions)
            run(topology)
            assert tables.differences() == {}


def rows_that_stop_passing(postgres: Database, pipeline: Pipeline, run: Run) -> dict[str, list[Any]]:
    with trip(postgres) as tables:
        topology = pipeline(tables.text(), tables.schema)
        tables.change([([("put", key, {"v": key * 10}) for key in range(4)], 1)])
        run(topology)
        tables.change([([("set", 1, {"v": 11}), ("set", 2, {"v": 10}), ("set", 3, {"v": None})], 1)])
        run(topology)
        return tables.differences()


def test_an_update_that_no_longer_passes_takes_the_row_back(postgres: Database, pipeline: Pipeline, run: Run) -> None:
    assert rows_that_stop_passing(postgres, pipeline, run) == {}


def test_a_condition_that_only_filters_leaves_it_behind(
    postgres: Database, pipeline: Pipeline, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "passing", lambda condition, op: f"({condition})")
    found = rows_that_stop_passing(postgres, pipeline, run)
    assert list(found) == ["some"] and sorted(found["some"]) == [(2, 20), (3, 30)]
