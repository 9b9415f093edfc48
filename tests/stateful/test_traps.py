"""Five traps of raw Spark, each with Spark falling into it: the last window, the silent input, the row from 2099, the rows that vanish,
and the Python function that pays per key (that one is measured in `bench/process.py`).
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {user: string, at: timestamp}
    mode: {type: bounded}
    max_files_per_epoch: 1
    on_error: drop
    event_time: {column: at, watermark: 10s}
transforms:
  counted: {type: window, from: clicks, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}, late: drop}
sinks:
  out: {type: memory, from: counted}
"""


def write(folder: str, *epochs: list[str]) -> None:
    Path(folder).mkdir()
    for number, times in enumerate(epochs):
        path = Path(folder) / f"{number}.json"
        path.write_text("".join(json.dumps({"user": "a", "at": time}) + "\n" for time in times))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def ours(pipeline: Callable[..., Any], run: Callable[..., Any]) -> tuple[int, Any]:
    topology = pipeline(PIPELINE)
    report = run(topology)
    return sum(topology.node("out").component.table()["n"].to_pylist()), report.nodes


def stream(spark: "SparkSession", folder: str) -> "DataFrame":
    reader = spark.readStream.schema("user string, at timestamp").option("maxFilesPerTrigger", 1)
    return reader.json(str(Path(folder).absolute())).withWatermark("at", "10 seconds")


def raw(frame: "DataFrame") -> int:
    """Rows that a hand-written query counts before it ends."""
    found: list[int] = []
    counted = frame.selectExpr("window(at, '1 minute') w").groupBy("w").count()
    writer = counted.writeStream.outputMode("append").option("checkpointLocation", str(Path("raw").absolute())).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: found.extend(row["count"] for row in batch.collect())).start().awaitTermination()
    return sum(found)


def times(*minutes: int) -> list[str]:
    return [f"2024-01-01T00:{minute:02}:30Z" for minute in minutes]


def test_the_last_window_comes_out(spark: "SparkSession", pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    write("in", times(0, 1), times(2))
    assert ours(pipeline, run)[0] == 3
    assert raw(stream(spark, "in")) == 2, "Spark keeps the last window for ever"


def test_a_row_from_2099_does_not_make_the_others_late(
    spark: "SparkSession", pipeline: Callable[..., Any], run: Callable[..., Any]
) -> None:
    write("in", times(0), ["2099-01-01T00:00:00Z"], times(0), times(1, 1))
    total, nodes = ours(pipeline, run)
    assert total == 4 and nodes["clicks"].rejected == 1 and nodes["counted"].late == 0
    assert raw(stream(spark, "in")) < 4, "in Spark everything after it is late"


def test_late_rows_do_not_vanish_unseen(spark: "SparkSession", pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    write("in", times(0), times(5), times(6), times(0, 0, 0), times(7))
    total, nodes = ours(pipeline, run)
    assert total == 4 and nodes["counted"].late == 3
    topology = pipeline(PIPELINE.replace("late: drop}", "late: fail}"), "strict")
    with pytest.raises(RunError, match="3 rows came too late"):
        run(topology)
    assert raw(stream(spark, "in")) == 3, "Spark drops them, says nothing, and counts one group"


def test_a_silent_input_stops_raw_spark(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours goes on: `test_idle_inputs.py`."""
    monkeypatch.chdir(tmp_path)
    write("loud", times(0), times(5), times(9), times(12))
    write("silent", times(0))
    assert raw(stream(spark, "loud").unionByName(stream(spark, "silent"))) == 0, "the silent input's clock holds everything"
