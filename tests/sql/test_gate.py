"""Spark's plan alone decides what goes window by window: by the identity of columns, and by the kind of their windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from millstream.sql.analysed.gate import Carrier, per_epoch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEN, THIRTY = Carrier("window 10"), Carrier("window 30")
INPUTS = {
    "_millstream_a": {"w": TEN},
    "_millstream_b": {"w": TEN},
    "_millstream_c": {"w": THIRTY},
    "_millstream_s": {"w": Carrier("session 5")},
}


@pytest.fixture(autouse=True)
def views(spark: SparkSession) -> Iterator[None]:
    for name in INPUTS:
        spark.createDataFrame([], "w struct<start: timestamp, end: timestamp>, k string, n int").createOrReplaceTempView(name)
    yield
    for name in INPUTS:
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.n FROM _millstream_a a JOIN _millstream_b b ON a.w = b.w",
        "SELECT a.n FROM _millstream_a a JOIN _millstream_b b ON a.w.start = b.w.start AND a.k = b.k",
        "SELECT w, count(*) FROM (SELECT coalesce(a.w, b.w) w FROM _millstream_a a FULL JOIN _millstream_b b ON a.w = b.w) GROUP BY w",
        "SELECT x.e, max(n) FROM (SELECT w.end e, n FROM _millstream_a) x GROUP BY x.e",
        "SELECT rank() OVER (PARTITION BY w.end ORDER BY n) FROM _millstream_s",
        "SELECT a.n FROM _millstream_a a JOIN VALUES ('x') v(k) ON a.k = v.k",
    ],
)
def test_what_goes_window_by_window_passes(spark: SparkSession, sql: str) -> None:
    assert per_epoch(spark.sql(sql), INPUTS) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.n FROM _millstream_a a JOIN _millstream_c c ON a.w = c.w",
        "SELECT a.n FROM _millstream_a a JOIN _millstream_c c ON a.w.end = c.w.end",
        "SELECT a.n FROM _millstream_a a JOIN _millstream_b b ON a.w.end = b.w.start",
        "SELECT w, count(*) FROM (SELECT b.w FROM _millstream_a a LEFT JOIN _millstream_b b ON a.w = b.w) GROUP BY w",
        "SELECT w, count(*) FROM (SELECT w FROM _millstream_a UNION ALL SELECT w FROM _millstream_c) GROUP BY w",
        "SELECT w, count(*) FROM _millstream_a GROUP BY ROLLUP(w)",
        "SELECT rank() OVER (PARTITION BY w.start ORDER BY n) FROM _millstream_s",
        "SELECT v.k FROM VALUES ('x') v(k) LEFT JOIN _millstream_a a ON a.k = v.k",
        "SELECT DISTINCT k FROM _millstream_a",
    ],
)
def test_what_needs_rows_of_other_epochs_is_refused(spark: SparkSession, sql: str) -> None:
    assert per_epoch(spark.sql(sql), INPUTS) is not None
