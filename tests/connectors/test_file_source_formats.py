"""Every format is read, with its schema given or found; columns go by their names."""

import csv
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files
from millstream.connectors.file.source import FileSource
from millstream.errors import RunError

pytestmark = pytest.mark.spark
ROWS = "SELECT CAST(id AS bigint) AS id, concat('ü', id) AS name, id * 1.5D AS x FROM range(3)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def read(spark: Any, context: Callable, rows: Callable, path: Path, **options: Any) -> list[dict[str, Any]]:
    source = FileSource(path=str(path), **{"mode": {"type": "bounded"}} | options)
    return sorted(rows(source.open(context()).read(spark)), key=str)


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
@pytest.mark.parametrize("schema", [None, {"id": "int64", "name": "string", "x": "float64"}], ids=["inferred", "given"])
def test_rows_come_back(spark: Any, tmp_path: Path, context: Callable, rows: Callable, format: str, schema: dict | None) -> None:
    spark.sql(ROWS).write.option("header", "true").format(format).save(str(tmp_path / "in"))
    found = read(spark, context, rows, tmp_path / "in", format=format, schema=schema)
    assert [(int(row["id"]), row["name"], row["x"]) for row in found] == [(n, f"ü{n}", n * 1.5) for n in range(3)]


def test_text_is_lines(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    (folder / "a.txt").write_text("one\n\ntwo, 2\n")
    assert read(spark, context, rows, folder / "a.txt", format="text") == [{"value": ""}, {"value": "one"}, {"value": "two, 2"}]


def test_json_has_times_with_zones_decimals_lists_and_structs(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    (folder / "a.json").write_text('{"at": "2026-01-01T01:00:00.123456+01:00", "n": 19.99, "l": ["a"], "s": {"b": true, "c": 1}}\n')
    schema = {"at": "timestamp", "n": "decimal(18,2)", "l": "list<string>", "s": "struct<b: bool>"}
    (row,) = read(spark, context, rows, folder, format="json", schema=schema)
    assert row == {"at": datetime(2026, 1, 1, 0, 0, 0, 123456), "n": Decimal("19.99"), "l": ["a"], "s": {"b": True}}


def test_files_of_different_columns_are_found_together(spark: Any, folder: Path, context: Callable) -> None:
    spark.sql("SELECT 1 AS a").write.parquet(str(folder / "1"))
    spark.sql("SELECT 2 AS b").write.parquet(str(folder / "2"))
    assert sorted(FileSource(path=str(folder), format="parquet").open(context()).discover(spark).names) == ["a", "b"]


def test_malformed_rows_do_not_become_columns(spark: Any, folder: Path, context: Callable) -> None:
    (folder / "a.json").write_text('{"id": 1}\nnonsense\n')
    assert FileSource(path=str(folder), format="json").open(context()).discover(spark).names == ["id"]


def test_files_without_rows_say_nothing_about_columns(spark: Any, folder: Path, context: Callable) -> None:
    (folder / "a.json").write_text("")
    with pytest.raises(RunError, match=r"MS060.*no row"):
        FileSource(path=str(folder), format="json").open(context()).discover(spark)


def test_csv_columns_go_by_the_header_and_not_by_their_place(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    (folder / "a.csv").write_text('more,name,id\nx,"a,b",1\ny,,2\n')
    schema = {"id": "int64", "name": "string"}
    assert read(spark, context, rows, folder, format="csv", schema=schema) == [{"id": 1, "name": "a,b"}, {"id": 2, "name": None}]


def test_csv_with_another_header_fails_instead_of_mixing_columns_up(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    (folder / "a.csv").write_text("first,last\nann,arbor\n")
    (folder / "b.csv").write_text("last,first\narbor,ann\n")
    with pytest.raises(Exception, match="header"):
        read(spark, context, rows, folder, format="csv", schema={"first": "string", "last": "string"})


def test_csv_doubles_quotes_as_other_programs_do(
    spark: Any, folder: Path, context: Callable, rows: Callable, pipeline: Callable, run: Callable
) -> None:
    texts = ['e "q"', '"', "back\\slash", "end\\", 'a,"b"', "plain", '\\"', "'"]
    with (folder / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "name"], *enumerate(texts)])
    schema = {"id": "int64", "name": "string"}
    assert [row["name"] for row in read(spark, context, rows, folder, format="csv", schema=schema)] == texts
    given = json.dumps([{"id": id, "name": name} for id, name in enumerate(texts)])
    run(pipeline(f"sources: {{a: {{type: memory, rows: {given}}}}}\nsinks: {{b: {{type: file, from: a, path: written, format: csv}}}}\n"))
    (written,) = committed_files("written")
    with Path(written).open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == texts


def test_csv_options_reach_spark(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    (folder / "a.csv").write_text("1;ann\n2;bob\n")
    options = {"schema": {"id": "int64", "name": "string"}, "options": {"header": False, "delimiter": ";"}}
    assert read(spark, context, rows, folder, format="csv", **options) == [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]
