"""The callback that Spark's JVM invokes for every epoch.

PySpark's own wrapper builds a new Python session around each epoch's frame. For a small epoch that costs as much as all of Millstream's own
work. The session of a running query stays the same, so it is wrapped once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

_SOURCES = "org.apache.spark.sql.execution.streaming.sources"


class EpochCallback:
    """Passes epochs to a function."""

    def __init__(self, spark: SparkSession, function: Callable[[DataFrame, int], None]) -> None:
        self._spark, self._function = spark, function
        self._session: SparkSession | None = None

    def call(self, frame: JavaObject, epoch: int) -> None:
        if self._session is None:
            self._session = SparkSession(self._spark.sparkContext, frame.sparkSession())
        self._function(ClassicDataFrame(frame, self._session), epoch)

    class Java:
        """The interface that Py4J presents to the JVM."""

        implements = [f"{_SOURCES}.PythonForeachBatchFunction"]  # noqa: RUF012 — Py4J reads it


def for_each_epoch(writer: DataStreamWriter, spark: SparkSession, function: Callable[[DataFrame, int], None]) -> DataStreamWriter:
    """The same as `writer.foreachBatch(function)`."""
    gateway: Any = spark.sparkContext._gateway
    sources = gateway.jvm.org.apache.spark.sql.execution.streaming.sources
    sources.PythonForeachBatchHelper.callForeachBatch(writer._jwrite, EpochCallback(spark, function))
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark leaves it untyped
    return writer
