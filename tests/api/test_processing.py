"""Process functions and dedup from Python: the same nodes as in YAML, planned and run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream import EventTime, MemorySink, MemorySource, ProcessFunction, StreamEnvironment, ValueState
from millstream.plan.document import from_yaml, to_yaml

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
ROWS = tuple({"user": user, "n": n, "at": T0 + timedelta(minutes=n)} for n, user in enumerate("abbacb"))


class Counts(ProcessFunction):
    output = {"user": "string", "count": "int64"}
    outputs = {"many": {"user": "string"}}
    state = {"count": ValueState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        state["count"].set(state["count"].get(0) + rows.num_rows)
        timers.at(rows["at"][rows.num_rows - 1].as_py())
        if state["count"].get() > 2:
            yield "many", {"user": key}

    def on_timer(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        return {"user": key, "count": state["count"].get()}


def environment(counts: MemorySink, many: MemorySink, once: MemorySink) -> StreamEnvironment:
    env = StreamEnvironment("p")
    clicks = env.from_source(MemorySource(rows=ROWS, schema=SCHEMA), "clicks", event_time=EventTime("at"))
    counted = clicks.key_by("user").process(Counts, name="counted")
    counted.to(counts)
    counted.output("many").select("user").to(many)
    clicks.dedup("user", within="3m", name="once").to(once)
    return env


def test_the_plan_goes_to_yaml_and_back(tmp_path: Path) -> None:
    topology = environment(MemorySink(), MemorySink(), MemorySink()).topology()
    again = from_yaml(to_yaml(topology), tmp_path)
    assert again.node("counted").component == topology.node("counted").component
    assert again.node("once").component == topology.node("once").component
    assert {node.name for node in again.nodes} == {node.name for node in topology.nodes}


@pytest.mark.spark
def test_rows_and_side_rows_come_out(tmp_path: Path, spark: Any) -> None:
    from dataclasses import replace

    from millstream.engine.engine import SparkEngine
    from millstream.plan.run_options import RunOptions
    from millstream.plan.settings import Settings

    sinks = [MemorySink(), MemorySink(), MemorySink()]
    topology = replace(environment(*sinks).topology(), settings=Settings(checkpoint=str(tmp_path / "ck")))
    SparkEngine(spark).run(topology, RunOptions())
    counts, many, once = (sink.rows() for sink in sinks)
    assert sorted(row["count"] for row in counts) == [1, 2, 3]
    assert many == [{"user": "b"}]
    assert sorted((row["user"], row["n"]) for row in once) == [("a", 0), ("a", 3), ("b", 1), ("b", 5), ("c", 4)]


@pytest.mark.spark
def test_spark_s_view_of_the_plan_is_the_main_rows(spark: Any, tmp_path: Path) -> None:
    from millstream.checkpoint.layout import Checkpoint
    from millstream.clients.storage import LocalStorage
    from millstream.engine.offline.preview import _analyse
    from millstream.plan.cutting import cut

    topology = environment(MemorySink(), MemorySink(), MemorySink()).topology()
    analysis = _analyse(topology, cut(topology), Checkpoint(LocalStorage(tmp_path), "p"), spark)
    schemas = analysis.schemas
    assert [finding for finding in analysis.findings if finding.level == "error"] == []
    assert schemas["counted"] is not None and schemas["counted"].names == ["user", "count"]
    assert schemas["once"] is not None and schemas["once"].names == SCHEMA.names
