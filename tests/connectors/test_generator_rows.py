"""The rows that a generator makes: the same for the same seed, spread as asked."""

import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import fmean, pstdev
from typing import Any

import pytest
from tests.connectors.conftest import opened

from millstream.connectors.generator.source import GeneratorSource

pytestmark = pytest.mark.spark
FIELDS = {
    "value": {"type": "sequence", "start": 100, "step": 3},
    "user": {"type": "choice", "values": ["ann", "bob", "it's \\ `c`"], "weights": [6, 3, 1]},
    "even": {"type": "choice", "values": [1, 2, 3, 4]},
    "whole": {"type": "uniform", "min": -2, "max": 2},
    "real": {"type": "uniform", "min": 10.0, "max": 20.0},
    "bell": {"type": "normal", "mean": 50, "stddev": 5},
    "at": {"type": "timestamp", "start": "2026-01-01T00:00:00+01:00", "step": "10ms", "jitter": "1s"},
    "key": {"type": "uuid"},
    "name": {"type": "template", "template": "<{label}>"},
    "label": {"type": "template", "template": "{user}/{value}/{hole}"},
    "hole": {"type": "constant", "value": 7, "nulls": 0.25},
    "coin": {"type": "bool", "probability": 0.2},
}


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[dict[str, Any]]]:
    """The first epochs of a generator, in the order of `value`."""

    def make(**options: Any) -> list[dict[str, Any]]:
        from millstream.clients.storage import LocalStorage
        from millstream.plan.components import NodeContext

        folder = tmp_path_factory.mktemp("generator")
        source = GeneratorSource(**{"fields": FIELDS, "rows": 4000, "rows_per_epoch": 4000, "seed": 1} | options)
        found: list[dict[str, Any]] = []
        frame = source.open(NodeContext("g", folder, LocalStorage(folder))).read(spark)
        query = frame.writeStream.foreachBatch(lambda batch, _: found.extend(row.asDict() for row in batch.collect()))
        query.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()
        assert frame.schema.simpleString() == _spark_schema(source)
        return sorted(found, key=lambda row: row["value"])

    return make


def _spark_schema(source: GeneratorSource) -> str:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(source.output()).simpleString()


@pytest.fixture(scope="module")
def rows(made: Callable[..., list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return made()


def test_the_same_seed_gives_the_same_rows_however_they_are_cut(made: Callable, rows: list) -> None:
    assert made(partitions=3) == rows
    assert made(seed=2) != rows


def test_a_sequence_counts(rows: list) -> None:
    assert [row["value"] for row in rows] == [100 + 3 * n for n in range(4000)]


def test_choices_come_as_often_as_their_weights_say(rows: list) -> None:
    counts = Counter(row["user"] for row in rows)
    assert {name: round(count / 4000, 1) for name, count in counts.items()} == {"ann": 0.6, "bob": 0.3, "it's \\ `c`": 0.1}
    assert all(0.22 < count / 4000 < 0.28 for count in Counter(row["even"] for row in rows).values())


def test_uniform_whole_numbers_reach_both_bounds(rows: list) -> None:
    assert set(Counter(row["whole"] for row in rows)) == {-2, -1, 0, 1, 2}
    assert all(10 <= row["real"] < 20 for row in rows)
    assert abs(fmean(row["real"] for row in rows) - 15) < 0.2


def test_normal_numbers_have_their_mean_and_spread(rows: list) -> None:
    values = [row["bell"] for row in rows]
    assert (abs(fmean(values) - 50) < 0.4, abs(pstdev(values) - 5) < 0.3) == (True, True)


def test_times_advance_and_are_late_by_less_than_the_jitter(rows: list) -> None:
    first = datetime(2025, 12, 31, 23, tzinfo=UTC)
    late = [row["at"].replace(tzinfo=UTC) - first - timedelta(milliseconds=10) * n for n, row in enumerate(rows)]
    assert min(late) >= timedelta(0)
    assert timedelta(milliseconds=900) < max(late) < timedelta(seconds=1)


def test_uuids_are_valid_and_all_different(rows: list) -> None:
    keys = {row["key"] for row in rows}
    assert len(keys) == 4000
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", key) for key in keys)


def test_templates_see_the_other_columns(rows: list) -> None:
    for row in rows[:50]:
        assert row["name"] == f"<{row['user']}/{row['value']}/{'' if row['hole'] is None else row['hole']}>"


def test_nulls_and_coins_have_their_share(rows: list) -> None:
    assert abs(sum(row["hole"] is None for row in rows) / 4000 - 0.25) < 0.03
    assert abs(sum(row["coin"] for row in rows) / 4000 - 0.2) < 0.03


@pytest.mark.parametrize("per_second", [20.0, 2.5])
def test_a_rate_gives_every_number_once_and_ends(spark: Any, context: Callable, tmp_path: Any, per_second: float) -> None:
    source = GeneratorSource(fields={"id": {"type": "sequence"}}, rows=int(per_second * 2), rows_per_second=per_second)
    found: list[int] = []
    writer = source.open(context()).read(spark).writeStream.foreachBatch(lambda batch, _: found.extend(row.id for row in batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path / "q")).trigger(processingTime="0 seconds").start()
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not _over(source, query):
        time.sleep(0.05)
    query.stop()
    assert sorted(found) == list(range(int(per_second * 2)))


def _over(source: GeneratorSource, query: Any) -> bool:
    progress = query.lastProgress
    return bool(progress) and opened(source).is_exhausted(progress["sources"][0]["endOffset"])
