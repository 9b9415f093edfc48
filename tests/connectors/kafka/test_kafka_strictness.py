"""Stopping at a bad message and keeping it apart are two ways of parsing: they must agree on what is bad."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from millstream.clients.storage import LocalStorage
from millstream.connectors.kafka.read.rows import rows
from millstream.connectors.kafka.schemas.registered import UnknownIds
from millstream.connectors.kafka.source import KafkaSource
from millstream.plan.components import REJECT, NodeContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
MESSAGE = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
VALUES = {
    "json": [
        *("[1]", "5", "{", "", '{"id": "x"}', b"\xff", None, '{"id": 1, "at": "soon"}', "null", '"text"', '[{"id": 1}]', "{} {}"),
        *('{"id": 1.5}', '{"id": 99999999999999999999}', '{"tags": "a"}', '{"deep": {"n": "x"}}', '{"id": true}', '{"at": "2026-01-01"}'),
        *('{"id": 1}', "{}", '{"more": 1}', '{"id": null}', ' {"id": 1} ', '{"tags": ["a"]}', '{"deep": {"n": 1}}'),
    ],
    "csv": ["1", "", "1,2,3", "x,2", None, '"1,2', "1,2", ",", "1,"],
}
SCHEMAS = {
    "json": {"id": "int64", "at": "timestamp", "tags": "list<string>", "deep": "struct<n: int32>"},
    "csv": {"a": "int64", "b": "int64"},
}


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_both_ways_judge_alike(kind: Any, spark: SparkSession, tmp_path: Path) -> None:
    source = KafkaSource(bootstrap_servers="localhost:1", topic="t", format=kind, schema=SCHEMAS[kind])
    context = NodeContext("m", tmp_path, LocalStorage(tmp_path))
    values = [value.encode() if isinstance(value, str) else value for value in VALUES[kind]]
    messages = spark.createDataFrame([(None, value, "t", 0, place, None) for place, value in enumerate(values)], MESSAGE).coalesce(1)
    apart = [row[REJECT] is not None for row in rows(source, messages, replace(context, isolate=True), (), UnknownIds()).collect()]
    good = [place for place, bad in enumerate(apart) if not bad]
    assert not _stops(rows(source, messages.where(F.col("offset").isin(good)), context, (), UnknownIds()))
    for place in set(range(len(values))) - set(good):
        assert _stops(rows(source, messages.where(f"offset = {place}"), context, (), UnknownIds())), VALUES[kind][place]
    assert 2 < len(good) < len(values) - 2


def _stops(frame: DataFrame) -> bool:
    try:
        frame.collect()
    except (PySparkException, Py4JJavaError):
        return True
    return False
