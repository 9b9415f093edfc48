"""Columns from `key=value` directories: decoded, typed, and right even when the first one appears after the start."""

import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from millstream.connectors.file.source import FileSource

pytestmark = pytest.mark.spark
SCHEMA = {"city": "string", "id": "int64", "day": "date"}


def put(folder: Path, directories: str, number: int) -> None:
    (folder / directories).mkdir(parents=True, exist_ok=True)
    (folder / directories / f"{number}.json").write_text(json.dumps({"id": number}) + "\n")


def by_id(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows}


def test_values_are_decoded_and_typed(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    # spark itself writes `a:b` as `a%3Ab`, and a null as the last of these
    for number, city in enumerate(["Köln", "a%3Ab", "x+y z", "100%", "__HIVE_DEFAULT_PARTITION__"]):
        put(tmp_path / "in", f"day=2026-01-0{number + 1}/city={city}", number)
    found = by_id(
        rows(FileSource(path=str(tmp_path / "in"), format="json", schema=SCHEMA, mode={"type": "bounded"}).open(context()).read(spark))
    )
    assert [found[number]["city"] for number in range(5)] == ["Köln", "a:b", "x+y z", "100%", None]
    assert found[2]["day"] == date(2026, 1, 3)


def test_what_spark_writes_is_read_back(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    written = [(1, "a/b=c:d%'\"é +"), (2, "plain"), (3, None)]
    spark.createDataFrame(written, "id long, city string").write.partitionBy("city").parquet(str(tmp_path / "in"))
    source = FileSource(path=str(tmp_path / "in"), format="parquet", schema={"id": "int64", "city": "string"}, mode={"type": "bounded"})
    assert sorted((row["id"], row["city"]) for row in rows(source.open(context()).read(spark))) == written


def test_types_are_inferred_and_leading_zeros_kept(spark: Any, tmp_path: Path, context: Callable) -> None:
    put(tmp_path / "in", "n=1/day=2026-01-01/zip=007", 1)
    put(tmp_path / "in", "n=-20/day=2026-01-02/zip=50667", 2)
    schema = FileSource(path=str(tmp_path / "in"), format="json").open(context()).discover(spark)
    assert {field.name: str(field.type) for field in schema} == {"id": "int64", "n": "int64", "day": "date32[day]", "zip": "string"}


def test_a_directory_above_the_path_gives_no_column(spark: Any, tmp_path: Path, context: Callable) -> None:
    put(tmp_path / "run=5", "k=1", 1)
    assert FileSource(path=str(tmp_path / "run=5"), format="json").open(context()).discover(spark).names == ["id", "k"]


def test_a_value_in_the_file_comes_before_the_directory_s(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    put(tmp_path / "in", "id=99", 1)
    source = FileSource(path=str(tmp_path / "in"), format="json", schema={"id": "int64"}, mode={"type": "bounded"})
    assert rows(source.open(context()).read(spark)) == [{"id": 1}]


def started_empty(frame: Any, folder: Path, checkpoint: Path) -> list[dict[str, Any]]:
    """Start a stream over an empty directory, then let the first file arrive."""
    found: list[dict[str, Any]] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(row.asDict() for row in batch.collect()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="100 milliseconds").start()
    deadline = time.monotonic() + 300
    while not query.lastProgress and time.monotonic() < deadline:
        time.sleep(0.02)
    put(folder, "city=Bonn/day=2026-01-01", 1)
    while not found and query.isActive and time.monotonic() < deadline:
        time.sleep(0.02)
    query.stop()
    return found


def test_the_first_directory_may_come_after_the_start(spark: Any, tmp_path: Path, context: Callable) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    frame = FileSource(path=str(folder), format="json", schema=SCHEMA).open(context()).read(spark)
    assert started_empty(frame, folder, tmp_path / "q") == [{"city": "Bonn", "id": 1, "day": date(2026, 1, 1)}]


def test_spark_alone_would_mix_the_columns_up(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    frame = spark.readStream.schema("city string, id string, day string").json(str(folder))
    assert started_empty(frame, folder, tmp_path / "q") != [{"city": "Bonn", "id": "1", "day": "2026-01-01"}]
