"""Reads the state of process functions from a checkpoint that no run is using.

Spark's state reader returns the buckets' values. Each value describes its node and columns, so the class is not needed. Lists, maps and
times to live are returned as a function sees them, timers as times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.worker.bucket_processor import ABOUT, STATE
from millstream.worker.buckets import from_bytes
from millstream.worker.processing import as_datetime
from millstream.worker.state_layout import CLOCK, EVENT, KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPERATOR = "transformWithStateInPySparkExec"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The state of one key. A bucket function's state is returned row by row, with all its columns in `state`."""

    node: str
    key: Mapping[str, Any]
    state: Mapping[str, Any]
    timers: tuple[datetime, ...] = ()
    clock_timers: tuple[datetime, ...] = field(default=())


def stored_state(spark: SparkSession, url: str, node: str | None = None) -> Iterator[KeyRecord]:
    """The state in a query's checkpoint (`<checkpoint>/queries/<query>`), of one node or of all."""
    _ = spark.streams.active  # state stores report to a coordinator, which exists after the first use of `streams`
    operators = spark.read.format("state-metadata").load(url).where(f"operatorName = '{_OPERATOR}'").select("operatorId").distinct()
    for operator in sorted(row[0] for row in operators.collect()):
        reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", STATE)
        for bucket in reader.load(url).select("value.rows").toLocalIterator():
            table = from_bytes(bucket[0])
            about = json.loads((table.schema.metadata or {})[ABOUT.encode()])
            if node in {None, about["node"]}:
                yield from _records(table, about)


def readable_state(spark: SparkSession, url: str, node: str) -> Iterator[dict[str, Any]]:
    """The same for people: key and state, and the timers if there are any."""
    for record in stored_state(spark, url, node):
        timers = {"timers": list(record.timers), "clock_timers": list(record.clock_timers)}
        yield {"key": dict(record.key), "value": dict(record.state), **{name: times for name, times in timers.items() if times}}


def _records(table: pa.Table, about: Mapping[str, Any]) -> Iterator[KeyRecord]:
    kinds: Mapping[str, tuple[str, int | None]] = about["kinds"]
    for row in table.to_pylist():
        if EVENT not in row:
            key = {name: row[name] for name in about["keys"] if name in row}
            yield KeyRecord(about["node"], key, row)
            continue
        key = {name: row[f"{KEY}{name}"] for name in about["keys"]}
        state = {name: _plain(row[name], kind, ttl is not None) for name, (kind, ttl) in kinds.items()}
        times = [tuple(as_datetime(time) for time in row[name] or ()) for name in (EVENT, CLOCK)]
        yield KeyRecord(about["node"], key, state, times[0], times[1])


def _plain(stored: Any, kind: str, stamped: bool) -> Any:
    def value(entry: Any) -> Any:
        return entry["v"] if stamped and entry is not None else entry

    if kind == "map":
        return {name: value(entry) for name, entry in stored or ()}
    return [value(entry) for entry in stored or ()] if kind == "list" else value(stored)
