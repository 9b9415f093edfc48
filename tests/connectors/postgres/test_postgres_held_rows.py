"""Rows that the sink holds while it stages them are released; those that are kept for other sinks stay."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from millstream.connectors.postgres.write.delivery import hold

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kept", [True, False])
def test_rows_that_others_need_stay(spark: SparkSession, kept: bool) -> None:
    frame = spark.range(3)
    if kept:
        frame.persist()
    with hold(frame):
        assert frame.is_cached
    assert frame.is_cached is kept
    frame.unpersist()
