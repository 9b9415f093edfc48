"""What a file sink finds wrong before anything runs."""

from pathlib import Path

import pyarrow as pa
import pytest

from millstream.connectors.file.sink import FileSink

SCHEMA = pa.schema([("id", pa.int64()), ("user", pa.string()), ("tags", pa.list_(pa.string()))])


def problems(schema: pa.Schema | None = SCHEMA, **options: object) -> list[tuple[str, str]]:
    sink = FileSink(**{"path": "out", "format": "parquet"} | options)
    return [(problem.code, problem.help) for problem in sink.problems({"input": schema}, Path())]


def test_a_misspelt_partition_column_is_found() -> None:
    assert problems(partition_by=["usr"]) == [("MS024", "did you mean `user`?")]


def test_files_without_columns_are_refused() -> None:
    assert [code for code, _ in problems(partition_by=["id", "user", "tags"])] == ["MS026"]


def test_csv_cannot_hold_lists() -> None:
    assert [code for code, _ in problems(format="csv")] == ["MS026"]
    assert problems(pa.schema([("id", pa.int64())]), format="csv") == []


def test_what_is_unknown_is_not_complained_about() -> None:
    assert problems(None, partition_by=["anything"]) == []
    assert problems(partition_by="user") == []


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv", "avro", "orc"])
def test_it_survives_the_way_to_yaml_and_back(format: str) -> None:
    sink = FileSink(path="out", format=format, partition_by="a, b", target_file_size="128MB", options={"compression": "zstd"})
    again = FileSink.model_validate(sink.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == sink
    assert hash(again) == hash(sink)
    assert sink.extras() == (("avro",) if format == "avro" else ())
