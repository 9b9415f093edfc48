"""What is written: every format, nothing lost in it, files of about the size asked for; and nothing visible when writing fails."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.conftest import opened

from millstream.connectors.file.committed import committed_files, read_committed
from millstream.connectors.file.sink import FileSink
from millstream.errors import RunError, SpecError

pytestmark = pytest.mark.spark
ROWS = "SELECT id, if(id = 1, NULL, concat('ü', id)) AS name, TIMESTAMP '2026-01-01 00:00:00.000001' AS at FROM range(0, 4, 1, 2)"


def write(frame: Any, path: Path, epoch: Any, **options: Any) -> Any:
    sink = opened(FileSink(path=str(path), **options))
    staged = sink.stage(frame, epoch)
    sink.commit(staged, epoch)
    return staged


@pytest.mark.parametrize("format", ["parquet", "json", "csv", "orc"])
def test_every_row_and_microsecond_comes_back(spark: Any, tmp_path: Path, epoch: Callable, format: str) -> None:
    assert write(spark.sql(ROWS), tmp_path / "out", epoch(), format=format).rows == 4
    back = spark.read.schema(spark.sql(ROWS).schema).option("header", "true").format(format).load(committed_files(str(tmp_path / "out")))
    assert sorted(back.collect()) == sorted(spark.sql(ROWS).collect())


def test_json_keeps_nulls(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    write(spark.sql(ROWS), tmp_path / "out", epoch(), format="json")
    lines = [json.loads(line) for file in committed_files(str(tmp_path / "out")) for line in Path(file).read_text().splitlines()]
    assert {"id": 1, "name": None, "at": "2026-01-01T00:00:00.000001Z"} in lines
    with pytest.raises(SpecError, match="`read_committed` reads Parquet"):
        read_committed(str(tmp_path / "out"))


def test_partitions_are_directories_and_come_back_as_columns(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    frame = spark.sql("SELECT id, if(id = 3, NULL, concat('a/b:', id % 2)) AS p FROM range(4)")
    write(frame, tmp_path / "out", epoch(), format="parquet", partition_by=["p"])
    assert sorted((row["id"], row["p"]) for row in read_committed(str(tmp_path / "out")).to_pylist()) == [
        (0, "a/b:0"),
        (1, "a/b:1"),
        (2, "a/b:0"),
        (3, None),
    ]


def test_columns_may_come_and_go_between_epochs(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    write(spark.sql("SELECT 1 AS a"), tmp_path / "out", epoch(0), format="parquet")
    write(spark.sql("SELECT 2L AS a, 'x' AS b"), tmp_path / "out", epoch(1), format="parquet")
    assert read_committed(str(tmp_path / "out")).to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_options_reach_spark(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    write(spark.range(3), tmp_path / "out", epoch(), format="json", options={"compression": "gzip"})
    assert all(file.endswith(".json.gz") for file in committed_files(str(tmp_path / "out")))


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_files_have_about_the_size_asked_for(spark: Any, tmp_path: Path, epoch: Callable, format: str) -> None:
    # scattered over many tasks, and with texts that do not compress well
    frame = spark.sql("SELECT id, uuid() AS a, uuid() AS b FROM range(0, 60000, 1, 8)")
    write(frame, tmp_path / "small", epoch(), format=format, target_file_size="1MB")
    write(frame, tmp_path / "large", epoch(), format=format, target_file_size="1GB")
    sizes = [Path(file).stat().st_size for file in committed_files(str(tmp_path / "small"))]
    assert len(sizes) >= 4
    assert all(0.4e6 < size < 2e6 for size in sorted(sizes)[1:]), sizes
    assert len(committed_files(str(tmp_path / "large"))) == 1


def test_the_size_is_nobody_else_s_setting(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    name = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    before = spark.conf.get(name)
    write(spark.range(10), tmp_path / "out", epoch(), format="json", target_file_size="1MB")
    assert spark.conf.get(name) == before


def test_a_failing_row_leaves_nothing(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    bad = spark.sql("SELECT id, CAST(if(id = 900, 'x', '1') AS int) AS n FROM range(0, 1000, 1, 4)")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        write(bad, tmp_path / "out", epoch(), format="parquet")
    assert committed_files(str(tmp_path / "out")) == []
    assert [file for file in (tmp_path / "out").rglob("*") if file.is_file()] == []


def test_a_path_that_is_a_file(spark: Any, tmp_path: Path, context: Callable) -> None:
    (tmp_path / "out").write_text("in the way")
    for path in ("out", "out/below"):
        with pytest.raises(RunError, match=r"MS068.*is a file"):
            FileSink(path=str(tmp_path / path), format="json").open(context()).prepare(spark)


def test_a_path_that_may_not_be_written(spark: Any, tmp_path: Path, context: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.connectors.file import sink

    monkeypatch.setattr(sink.os, "access", lambda *_: False)
    with pytest.raises(RunError, match=r"MS061.*no permission to write"):
        FileSink(path=str(tmp_path / "out"), format="json").open(context()).prepare(spark)


def test_writing_in_an_epoch_of_a_stream(spark: Any, tmp_path: Path, epoch: Callable) -> None:
    staged: list[Any] = []
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load()

    def one(frame: Any, number: int) -> None:
        frame.createOrReplaceTempView("numbers")
        rows = frame.sparkSession.sql("SELECT value FROM numbers WHERE value % 2 = 0")
        staged.append(write(rows, tmp_path / "out", epoch(number), format="parquet", target_file_size="1MB").rows)

    writer = stream.writeStream.foreachBatch(one).option("checkpointLocation", str(tmp_path / "q"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert staged == [500]
    assert read_committed(str(tmp_path / "out")).num_rows == 500
