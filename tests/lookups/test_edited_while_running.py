"""Somebody edits a table in the middle of a run: the next epoch sees it, with a cache after its `ttl` at the latest."""

import time
from collections.abc import Callable

import pytest
from tests.lookups.conftest import Bench
from tests.lookups.live import PIPELINE, SQL, step

pytestmark = pytest.mark.spark
COLUMNS = "key: user_id, columns: {tier: string}"


def _topology(bench: Bench, pipeline: Callable, cache: str = "") -> object:
    return pipeline(PIPELINE.format(connections=bench.connections, table=bench.table(COLUMNS + cache), sql=SQL))


def _row(number: int) -> dict:
    return {"id": number, "user_id": "7"}


def test_without_a_cache_the_next_epoch_sees_every_edit(bench: Bench, pipeline: Callable, run: Callable) -> None:
    edits = {1: lambda: bench.put("7", "gold"), 2: lambda: bench.put("7", "silver"), 3: lambda: bench.delete("7")}
    got = step(_topology(bench, pipeline), run, [_row(number) for number in range(4)], edits)
    assert [(row["here"], row["tier"]) for row in got] == [(False, None), (True, "gold"), (True, "silver"), (False, None)]


def test_a_cache_sees_changes_removals_and_arrivals_after_its_time(bench: Bench, pipeline: Callable, run: Callable) -> None:
    def later(edit: Callable[[], None]) -> Callable[[], None]:
        return lambda: (edit(), time.sleep(1.1))  # the time that an entry lives, passed for certain

    edits = {1: later(lambda: bench.put("7", "gold")), 2: later(lambda: bench.put("7", "silver")), 3: later(lambda: bench.delete("7"))}
    got = step(_topology(bench, pipeline, ", cache: {ttl: 1s}"), run, [_row(number) for number in range(4)], edits)
    assert [(row["here"], row["tier"]) for row in got] == [(False, None), (True, "gold"), (True, "silver"), (False, None)]
