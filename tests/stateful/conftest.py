"""Small streams with event times, in as many epochs as a test likes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from millstream import DataStream, EventTime, MemorySource, Settings, StreamEnvironment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.fixture
def env(spark: SparkSession, tmp_path: Any) -> StreamEnvironment:
    return StreamEnvironment("p", spark=spark, settings=Settings(checkpoint=str(tmp_path / "checkpoint")))


@pytest.fixture
def timed(env: StreamEnvironment) -> Callable[..., DataStream]:
    """A bounded stream of rows whose `at` is their event time, cut into epochs of `size` rows."""

    def make(name: str, rows: Iterable[Mapping[str, Any]], size: int = 2, watermark: str = "0s") -> DataStream:
        source = MemorySource(rows=tuple(dict(row) for row in rows), rows_per_epoch=size)
        return env.from_source(source, name, event_time=EventTime("at", watermark=watermark))

    return make
