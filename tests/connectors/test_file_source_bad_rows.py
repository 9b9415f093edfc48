"""Rows that do not fit: told apart when asked for, and never turned into nulls in silence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.connectors.file.source import FileSource

pytestmark = pytest.mark.spark
SCHEMA = {"id": "int64", "name": "string"}
FILES = {
    "json": '{"id": 1, "name": "a"}\nnonsense\n{"id": "x", "name": "b"}\n{"id": 4}\n',
    "csv": "id,name\n1,a\nnonsense\nx,b\n4,\n5,c,d\n",
}
BAD = {"json": ["nonsense", '{"id": "x", "name": "b"}'], "csv": ["nonsense", "x,b", "5,c,d"]}


@pytest.fixture
def read(spark: Any, tmp_path: Path, context: Callable) -> Callable[..., Any]:
    def go(format: str, isolate: bool, **options: Any) -> Any:
        (tmp_path / f"in.{format}").write_text(FILES[format])
        source = FileSource(path=str(tmp_path / f"in.{format}"), format=format, schema=SCHEMA, mode={"type": "bounded"}, **options)
        return source.open(context(isolate=isolate)).read(spark)

    return go


@pytest.mark.parametrize("format", ["json", "csv"])
def test_they_come_out_as_rejects_with_their_text(read: Callable, rows: Callable, format: str) -> None:
    found = rows(read(format, isolate=True))
    good = [(row["id"], row["name"]) for row in found if row["_reject"] is None]
    bad = [row for row in found if row["_reject"] is not None]
    assert good == [(1, "a"), (4, None)]
    assert [row["_reject"]["raw"] for row in bad] == BAD[format]
    assert all(row["id"] is None and row["name"] is None and "does not fit" in row["_reject"]["error"] for row in bad)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_every_reader_agrees_on_which_rows_are_bad(read: Callable, rows: Callable, format: str) -> None:
    frame = read(format, isolate=True)
    assert len(rows(frame.where("_reject IS NOT NULL").select("_reject"), "rejects")) == len(BAD[format])
    assert [row["name"] for row in rows(frame.where("_reject IS NULL").select("name"), "names")] == ["a", None]
    assert [row["id"] for row in rows(frame.where("_reject IS NULL").select("id"), "ids")] == [1, 4]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_without_isolation_they_fail(read: Callable, rows: Callable, format: str) -> None:
    with pytest.raises(Exception, match=r"MALFORMED|Malformed"):
        rows(read(format, isolate=False))


def test_a_csv_row_that_is_too_short_fails_even_if_only_other_columns_are_read(read: Callable, rows: Callable) -> None:
    with pytest.raises(Exception, match=r"MALFORMED|Malformed"):
        rows(read("csv", isolate=False).select("name"))


def test_the_user_may_choose_to_have_nulls(read: Callable, rows: Callable) -> None:
    found = rows(read("json", isolate=False, options={"mode": "PERMISSIVE"}))
    assert [row["id"] for row in found] == [1, None, None, 4]


def test_formats_without_bad_rows_have_no_rejects(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    spark.range(2).write.parquet(str(tmp_path / "in"))
    source = FileSource(path=str(tmp_path / "in"), format="parquet", schema={"id": "int64"}, mode={"type": "bounded"})
    assert [row["_reject"] for row in rows(source.open(context(isolate=True)).read(spark))] == [None, None]


def test_a_broken_parquet_file_fails(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really PAR1")
    source = FileSource(path=str(tmp_path / "a.parquet"), format="parquet", schema={"id": "int64"}, mode={"type": "bounded"})
    with pytest.raises(Exception, match="parquet"):
        rows(source.open(context(isolate=True)).read(spark))
