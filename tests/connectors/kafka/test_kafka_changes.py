"""Messages that say what happened to a row: Debezium's envelopes, tombstones, operation headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.kafka import Cluster

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, object]]]


def errors(folder: Path) -> list[str]:
    found = [json.loads(line) for file in sorted((folder / "letters").glob("*.json")) for line in file.read_text().splitlines()]
    return [row["error"] for row in found]


def test_debezium_envelopes_become_a_changelog(kafka: Cluster, read: Read, tmp_path: Path) -> None:
    topic, row = kafka.topic(), {"id": 1, "amount": 2.5}
    bare = [{"before": None, "after": row, "op": "c"}, {"before": row, "after": {**row, "amount": 3.0}, "op": "u"}]
    wrapped = {"schema": {"type": "struct"}, "payload": {"before": {"id": 1}, "after": None, "op": "d", "source": {"lsn": 7}}}
    bad = [{"after": row, "op": "t"}, {"after": row}, {"op": "u", "before": row}, {"op": "d", "after": row}]
    kafka.send(topic, [*bare, wrapped, None, *bad, {"after": row, "op": "r"}])
    rows = read(f"topic: {topic}, format: json, envelope: debezium, schema: {{id: int64, amount: float64}}", isolate=True)
    assert rows == [
        {"id": 1, "amount": 2.5, "_op": "i", "_seq": 0},
        {"id": 1, "amount": 3.0, "_op": "u", "_seq": 1},
        {"id": 1, "amount": None, "_op": "d", "_seq": 2},
        {"id": 1, "amount": 2.5, "_op": "i", "_seq": 8},
    ]
    assert [error[:30] for error in errors(tmp_path)] == [
        "the operation `t` is not one o",
        "the value is not a Debezium en",
        "the envelope does not contain ",
        "the envelope does not contain ",
    ]


def test_a_tombstone_deletes_its_key(kafka: Cluster, read: Read, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.send(topic, [{"name": "ann"}, None], key="7")
    kafka.send(topic, [None])
    options = f"topic: {topic}, format: json, schema: {{name: string}}, key: {{id: int64}}, tombstones: delete"
    assert read(options, isolate=True) == [
        {"id": 7, "name": "ann", "_op": "i", "_seq": 0},
        {"id": 7, "name": None, "_op": "d", "_seq": 1},
    ]
    assert errors(tmp_path) == ["the message has neither key nor value"]


def test_tombstones_can_be_left_out(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, [{"name": "ann"}, None])
    assert read(f"topic: {topic}, format: json, schema: {{name: string}}, tombstones: drop") == [{"name": "ann"}]


def test_a_header_says_what_happened_and_nonsense_in_it_is_a_bad_row(kafka: Cluster, read: Read, tmp_path: Path) -> None:
    topic = kafka.topic()
    for letter in ("r", "c", "u", "d", "x"):
        kafka.send(topic, [letter], headers=[("dbz.op", letter.encode())])
    kafka.send(topic, ["none"])
    rows = read(f"topic: {topic}, format: string, operation_header: dbz.op", isolate=True)
    assert [(row["value"], row["_op"]) for row in rows] == [("r", "i"), ("c", "i"), ("u", "u"), ("d", "d"), ("none", "i")]
    assert errors(tmp_path) == ["the header `dbz.op` holds `x`, which is not one of r, c, u and d"]
