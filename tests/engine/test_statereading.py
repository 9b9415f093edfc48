"""State read back: each node finds its own operator, both sides of a join, the keys of windows and sessions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint.inventory import operators
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.state_reader import operators_of, parts, rows
from millstream.clients.storage import LocalStorage
from millstream.errors import UsageError
from millstream.plan.cutting import cut

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows:
    type: file
    path: in
    format: json
    schema: {k: string, at: timestamp}
    mode: {type: continuous}
    event_time: {column: at, watermark: 1s}
transforms:
  minutes:
    type: window
    from: rows
    key_by: k
    window: {type: tumbling, size: 1m}
    aggregate: {n: count(*)}
    event_time: {column: window_end, watermark: 0s}
  hours: {type: window, from: minutes, window: {type: tumbling, size: 1h}, aggregate: {total: sum(n)}}
sinks:
  out: {type: blackhole, from: hours}
settings: {trigger: {type: available_now}}
"""


def write(folder: Path) -> None:
    (folder / "in").mkdir()
    events = [{"k": k, "at": f"2026-01-01T00:0{minute}:00Z"} for minute, k in enumerate("abab")]
    (folder / "in/0.json").write_text("\n".join(map(json.dumps, events)))


def kept(folder: Path) -> Checkpoint:
    return Checkpoint(LocalStorage(folder / ".millstream/p"), "p")


def test_of_two_windows_in_one_query_each_shows_its_own(pipeline: Callable, run: Callable, tmp_path: Path, spark: Any) -> None:
    write(tmp_path)
    topology = pipeline(TEXT)
    run(topology)
    (plan,) = cut(topology)
    query = kept(tmp_path).query("hours")

    def shown(node: str, *key: str) -> list[dict[str, Any]]:
        (part,) = parts(spark, query, operators_of(node, plan, query))
        return rows(part, key, 10)

    assert [(row["key"]["k"], row["key"]["window"]["start"].minute) for row in shown("minutes")] == [("a", 2), ("b", 3)]
    assert [row["value"] for row in shown("hours")] == [{"sum": 2}]
    assert len(shown("minutes", "b")) == len(shown("minutes", "k=b")) == 1
    assert shown("minutes", "z") == []
    with pytest.raises(UsageError, match="the key has 2 columns"):
        shown("minutes", "a", "b", "c")


def test_sessions_are_known_by_their_name(pipeline: Callable, run: Callable, tmp_path: Path, spark: Any) -> None:
    write(tmp_path)
    sessions = "window: {type: session, gap: 5m}"
    topology = pipeline(TEXT.replace("window: {type: tumbling, size: 1m}", sessions).replace("from: hours", "from: minutes"))
    run(topology)
    query = kept(tmp_path).query("minutes")
    (operator,) = operators(query.storage)
    assert operator.kind == "sessions"
    (part,) = parts(spark, query, [operator])
    assert [row["key"]["k"] for row in rows(part, (), 10)] == ["a", "b"]


def test_both_sides_of_a_join_are_shown(tmp_path: Path, spark: Any) -> None:
    write(tmp_path)
    left, right = (
        spark.readStream.schema("k string, at timestamp").json(str(tmp_path / "in")).withWatermark("at", "1 minute").alias(name)
        for name in ("l", "r")
    )
    near = "l.k = r.k AND l.at BETWEEN r.at - INTERVAL 9 MINUTES AND r.at + INTERVAL 9 MINUTES"
    from pyspark.sql import functions as F

    joined = left.join(right, F.expr(near)).select("l.k")
    place = tmp_path / ".millstream/p/queries/joined"
    writer = joined.writeStream.format("noop").option("checkpointLocation", str(place)).trigger(availableNow=True)
    writer.start().awaitTermination()
    query = kept(tmp_path).query("joined")
    (operator,) = operators(query.storage)
    assert (operator.kind, operator.joins, operator.partitions) == ("join", True, 2)
    found = parts(spark, query, [operator])
    assert [(part.label, len(rows(part, (), 10))) for part in found] == [("left", 4), ("right", 4)]
