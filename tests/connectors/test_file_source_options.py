"""A file source's options, without Spark."""

from pathlib import Path

import pytest

from millstream.connectors.file.source import FileSource
from millstream.errors import SpecError


def codes(source: FileSource) -> list[tuple[str, str]]:
    return [(problem.code, problem.field) for problem in source.problems({}, Path())]


def test_it_survives_the_way_to_yaml_and_back() -> None:
    source = FileSource(
        path="in", format="csv", schema={"a": "int64"}, mode={"type": "bounded"}, options={"header": False, "maxColumns": 5}
    )
    again = FileSource.model_validate(source.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == source
    assert hash(again) == hash(source)
    assert again.options == {"header": "false", "maxColumns": "5"}


@pytest.mark.parametrize("name", ["ndjson", "jsonl", "json"])
def test_json_has_several_names(name: str) -> None:
    assert FileSource(path="in", format=name).format == "json"


def test_it_waits_for_more_unless_told_otherwise() -> None:
    waiting = FileSource(path="in", format="json")
    assert (waiting.bounded, waiting.poll_interval_ms) == (False, 5000)
    ending = FileSource(path="in", format="json", mode={"type": "bounded"})
    assert (ending.bounded, ending.poll_interval_ms, ending.available_now) == (True, 0, True)


def test_the_schema_is_the_declared_one_or_unknown() -> None:
    assert FileSource(path="in", format="json").output() is None
    assert str(FileSource(path="in", format="json", schema={"a": "list<int32>"}).output().field("a").type) == "list<item: int32>"
    assert FileSource(path="in", format="text").output().names == ["value"]


def test_only_avro_needs_an_extra() -> None:
    assert [FileSource(path="in", format=name).extras() for name in ("avro", "json")] == [("avro",), ()]


def test_parsing_is_dear_and_columns_are_cheap() -> None:
    assert {name: FileSource(path="in", format=name).expensive for name in ("csv", "json", "parquet", "orc")} == {
        "csv": True,
        "json": True,
        "parquet": False,
        "orc": False,
    }


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"format": "json", "path": "in/*.json", "recursive": False}, "recursive"),
        ({"format": "csv", "path": "in", "schema": {"a": "list<string>"}}, "schema"),
        ({"format": "text", "path": "in", "schema": {"line": "string"}}, "schema"),
    ],
)
def test_options_that_contradict_each_other_are_found(options: dict, field: str) -> None:
    assert codes(FileSource(**options)) == [("MS008", field)]


def test_options_that_agree_are_not_complained_about() -> None:
    assert codes(FileSource(path="in/*", format="csv", schema={"a": "int64"})) == []


@pytest.mark.parametrize("options", [{"path": ""}, {"format": "xml"}, {"max_files_per_epoch": 0}, {"mode": {"type": "once"}}])
def test_values_that_make_no_sense_are_refused(options: dict) -> None:
    with pytest.raises(SpecError):
        FileSource(**{"path": "in", "format": "json"} | options)


def test_a_small_bounded_input_is_known_to_be_small(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    bounded = {"format": "json", "mode": {"type": "bounded"}}
    assert FileSource(path=str(tmp_path), **bounded).small
    assert not FileSource(path="s3a://bucket/x", **bounded).small
    assert not FileSource(path=str(tmp_path), format="json").small
