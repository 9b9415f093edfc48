"""Messages become rows: formats, keys, metadata, where reading begins and goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.servers.kafka import Cluster

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, object]]]


def test_json_objects_have_the_columns_of_the_schema(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, [{"id": 1, "tags": ["a"], "more": 1}, {"id": 2}])
    kafka.send(topic, [{"id": 3, "tags": []}], partition=1)
    rows = read(f"topic: {topic}, format: json, schema: {{id: int64, tags: 'list<string>'}}")
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "tags": ["a"]},
        {"id": 2, "tags": None},
        {"id": 3, "tags": []},
    ]


def test_text_csv_and_keys(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["1,ann"], key="7:eu")
    kafka.send(topic, ["2,bob"], key="8:us")
    rows = read(f"topic: {topic}, format: csv, schema: {{id: int64, name: string}}, key: {{user: int64, region: string}}", name="a")
    assert rows == [{"user": 7, "region": "eu", "id": 1, "name": "ann"}, {"user": 8, "region": "us", "id": 2, "name": "bob"}]


def test_bytes_are_left_alone_and_metadata_says_where_they_were(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, [b"\xff\x00"], key="k", headers=[("h", b"v")], timestamp=1_767_225_600_000)
    (row,) = read(f"topic: {topic}, format: bytes, include_metadata: true")
    assert row == {
        "value": "/wA=",
        "__kafka_topic": topic,
        "__kafka_partition": 0,
        "__kafka_offset": 0,
        "__kafka_timestamp": "2026-01-01T00:00:00.000000Z",
        "__kafka_headers": [{"key": "h", "value": "dg=="}],
        "__kafka_key": "aw==",
    }


def test_a_filter_may_use_columns_that_are_not_kept(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a", "b", "c"])
    assert read(f"topic: {topic}, format: string, filter: \"__kafka_offset > 0 AND value <> 'c'\"") == [{"value": "b"}]


def test_transactions_count_when_they_are_committed(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    with kafka.transaction() as producer:
        producer.produce(topic, "aborted")
        producer.flush()
    with kafka.transaction() as producer:
        producer.produce(topic, "kept")
        producer.commit_transaction()
        producer.begin_transaction()
    assert read(f"topic: {topic}, format: string") == [{"value": "kept"}]


@pytest.mark.parametrize(("start", "rows"), [("latest", []), ("{0: 1}", ["b", "c"]), ("TIME", ["c"])])
def test_reading_begins_where_it_is_told_to(kafka: Cluster, read: Read, start: str, rows: list[str]) -> None:
    topic, now = kafka.topic(), round(time.time() * 1000)
    for index, value in enumerate("abc"):
        kafka.send(topic, [value], timestamp=now - 3_600_000 * (3 - index))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now / 1000 - 2 * 3600 + 600))
    found = read(f"topic: {topic}, format: string, starting_offsets: {start.replace('TIME', moment)}")
    assert [row["value"] for row in found] == rows


def test_several_topics_and_patterns(kafka: Cluster, read: Read) -> None:
    one, two = kafka.topic(), kafka.topic()
    kafka.send(one, ["1"])
    kafka.send(two, ["2"])
    assert sorted(row["value"] for row in read(f"topics: [{one}, {two}], format: string")) == ["1", "2"]


def test_new_partitions_and_new_topics_of_a_pattern_are_picked_up(kafka: Cluster, read: Read) -> None:
    first = kafka.topic()
    kafka.send(first, ["a"])
    options = f"pattern: '{first}.*', format: string"
    assert [row["value"] for row in read(options, endless=True)] == ["a"]
    kafka.partitions(first, 2)
    kafka.send(first, ["b"], partition=1)
    kafka.send(kafka.topic(name=f"{first}-more"), ["c"])
    assert sorted(row["value"] for row in read(options, endless=True)) == ["a", "b", "c"]
