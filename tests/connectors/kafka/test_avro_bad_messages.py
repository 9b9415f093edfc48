"""Messages that cannot be decoded are told with their place, or kept as dead letters; the others pass."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.kafka import Cluster
from tests.servers.registry import Schemas, avro, record

from millstream.errors import RunError

pytestmark = pytest.mark.spark
Rows = list[dict[str, Any]]
EVENT = record(("id", "long"), ("name", ["null", "string"], None), name="Event")


@pytest.fixture
def poisoned(kafka: Cluster, registry: Schemas) -> tuple[str, list[bytes]]:
    """A good message, and four that are not: another first byte, too short, cut off, an id that is nobody's."""
    topic = kafka.topic()
    id_ = registry.register(f"{topic}-value", EVENT)
    good = avro(id_, EVENT, {"id": 1 << 50, "name": "a"})
    bad = [b"\x01" + good[1:], b"\x00\x00", good[:8], avro(99_999, EVENT, {"id": 2, "name": None})]
    # a row of nulls that is no bad one
    other = record(("name", ["null", "string"], None), ("id", "long"), name="Event")
    kafka.send(topic, [good, *bad, avro(registry.register(f"{topic}-x", other), other, {"name": None, "id": 3})])
    return topic, bad


def test_each_bad_message_becomes_a_dead_letter_with_its_place(
    poisoned: tuple[str, list[bytes]], registry: Schemas, read: Callable[..., Rows], tmp_path: Path
) -> None:
    topic, bad = poisoned
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}'", isolate=True)
    assert [row["id"] for row in rows] == [1 << 50, 3]
    letters = [json.loads(line) for file in sorted((tmp_path / "letters").glob("*.json")) for line in file.read_text().splitlines()]
    told = {(raw := json.loads(letter["raw"]))["offset"]: (raw, letter["error"]) for letter in letters}
    assert sorted(told) == [1, 2, 3, 4]
    for offset, message in enumerate(bad, 1):
        raw, _ = told[offset]
        assert (raw["topic"], raw["partition"]) == (topic, 0)
        shown = base64.b64decode(raw["value_base64"]) if raw.get("value_base64") else raw["value"].encode()
        assert shown == message
    errors = [told[offset][1] for offset in range(1, 5)]
    assert "zero byte" in errors[0] and "zero byte" in errors[1]
    assert "cannot be decoded" in errors[2]
    assert f"schema 99999 is not in the registry (subject `{topic}-value`)" in errors[3]


def test_a_row_of_nulls_is_good_and_a_message_cut_off_is_not(
    kafka: Cluster, registry: Schemas, read: Callable[..., Rows], tmp_path: Path
) -> None:
    topic = kafka.topic()
    optional = record(("a", ["null", "long"], None), ("b", ["null", "string"], None))
    id_ = registry.register(f"{topic}-value", optional)
    kafka.send(topic, [avro(id_, optional, {"a": None, "b": None}), avro(id_, optional, {"a": 1, "b": "text"})[:-2]])
    assert read(f"topic: {topic}, schema_registry: '{registry.url}'", isolate=True) == [{"a": None, "b": None}]
    (letter,) = [json.loads(line) for file in (tmp_path / "letters").glob("*.json") for line in file.read_text().splitlines()]
    assert json.loads(letter["raw"])["offset"] == 1


def test_without_a_place_for_it_a_bad_message_stops_the_pipeline(
    poisoned: tuple[str, list[bytes]], registry: Schemas, read: Callable[..., Rows]
) -> None:
    topic, _ = poisoned
    with pytest.raises(RunError) as stopped:
        read(f"topic: {topic}, schema_registry: '{registry.url}'")
    (found,) = stopped.value.diagnostics
    assert found.code == "MS062"
    assert f"topic {topic}, partition 0, offset 1" in found.message


def test_an_id_that_is_nobodys_is_told_with_subject_and_place(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    id_ = registry.register(f"{topic}-value", EVENT)
    kafka.send(topic, [avro(id_, EVENT, {"id": 1, "name": None}), avro(88_888, EVENT, {"id": 2, "name": None})])
    with pytest.raises(RunError, match=rf"topic {topic}, partition 0, offset 1: schema 88888 is not in the registry"):
        read(f"topic: {topic}, schema_registry: '{registry.url}'")


def test_a_writer_that_avro_cannot_resolve_is_told_with_the_difference(
    kafka: Cluster, registry: Schemas, read: Callable[..., Rows]
) -> None:
    topic = kafka.topic()
    old, new = record(("id", "string"), name="Event"), record(("id", "long"), name="Event")
    first = registry.register(f"elsewhere-{topic}", old)
    second = registry.register(f"{topic}-value", new)
    kafka.send(topic, [avro(second, new, {"id": 1}), avro(first, old, {"id": "x"})])
    with pytest.raises(RunError) as stopped:
        read(f"topic: {topic}, schema_registry: '{registry.url}'")
    message = stopped.value.diagnostics[0].message
    assert f"schema {first} cannot be read with the pinned one of subject `{topic}-value`" in message
    assert "STRING" in message and "LONG" in message
