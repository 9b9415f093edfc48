"""A message that does not fit is told with its place, and `on_error` decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.kafka import Cluster

from millstream.errors import RunError

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, object]]]
SCHEMA = "format: json, schema: {id: int64, at: timestamp}"
BAD = ["[1]", "5", "{", "", '{"id": "x"}', b"\xff", None, '{"id": 1, "at": "soon"}', "null"]


def letters(folder: Path) -> list[dict[str, object]]:
    found = [json.loads(line) for file in sorted((folder / "letters").glob("*.json")) for line in file.read_text().splitlines()]
    return [{**json.loads(row["raw"]), "error": row["error"]} for row in found]


def test_bad_messages_go_to_the_dead_letters_and_good_ones_pass(kafka: Cluster, read: Read, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.send(topic, [{"id": 1}, *BAD, {"id": 2, "at": "2026-01-01T00:00:00Z"}])
    rows = read(f"topic: {topic}, {SCHEMA}", isolate=True)
    assert [row["id"] for row in rows] == [1, 2]
    found = letters(tmp_path)
    assert [row["offset"] for row in found] == list(range(1, 1 + len(BAD)))
    assert {row["topic"] for row in found} == {topic}
    assert found[0]["value"] == "[1]"
    assert found[5]["value_base64"] == "/w=="
    assert found[6]["error"] == "the message has no value"


@pytest.mark.parametrize(
    ("options", "value", "key"),
    [
        ("format: csv, schema: {a: int64, b: int64}", "1", None),
        ("format: string", b"\xff", None),
        ("format: string, key: {id: int64}", "fine", "x"),
        ("format: string, key: {id: int64, at: date}", "fine", "1"),
        ("format: string, key: {id: int64}, key_format: json", "fine", "{"),
    ],
)
def test_other_formats_and_keys_are_judged_alike(kafka: Cluster, read: Read, tmp_path: Path, options: str, value: str, key: str) -> None:
    topic = kafka.topic()
    kafka.send(topic, [value], key=key)
    assert read(f"topic: {topic}, {options}", isolate=True) == []
    assert [row["offset"] for row in letters(tmp_path)] == [0]


def test_by_default_the_run_stops_and_names_the_message(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, [{"id": 1}, "{"], partition=1)
    with pytest.raises(RunError) as caught:
        read(f"topic: {topic}, {SCHEMA}")
    (finding,) = caught.value.diagnostics
    assert finding.code == "MS062"
    assert f"topic {topic}, partition 1, offset 1" in finding.message


@pytest.mark.parametrize("query", ["SELECT 1 AS one FROM m", "SELECT id FROM m WHERE id > 3"])
def test_whether_a_message_is_bad_does_not_depend_on_who_reads_it(kafka: Cluster, run, pipeline, query: str) -> None:
    topic = kafka.topic()
    kafka.send(topic, ['{"id": 1, "at": "soon"}'])
    text = f"""
        sources:
          m: {{type: kafka, bootstrap_servers: "{kafka.address}", topic: {topic}, {SCHEMA}, mode: {{type: bounded}}}}
        transforms:
          counted: {{type: sql, sql: "{query}"}}
        sinks:
          out: {{type: blackhole, from: counted}}
    """
    with pytest.raises(RunError, match="MS062"):
        run(pipeline(text))
