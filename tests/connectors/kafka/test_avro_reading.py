"""Avro messages become columns; schemas that differ meet in one reader's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.kafka import Cluster
from tests.servers.registry import Schemas, avro, record

pytestmark = pytest.mark.spark
Rows = list[dict[str, Any]]


def test_mixed_writers_of_one_batch_meet_in_the_latest_schema(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    subject = f"{topic}-value"
    first = record(("id", "int"), ("gone", "string"), ("note", "string"), name="Order")
    second = record(("id", "long"), ("note", ["null", "string"], None), ("kind", "string", "none"), name="Order")
    ids = [registry.register(subject, first), registry.register(subject, second)]
    old = avro(ids[0], first, {"id": 1, "gone": "x", "note": "o"})
    kafka.send(topic, [old, avro(ids[1], second, {"id": 1 << 40, "note": None, "kind": "k"}), old])
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}'")
    assert [(row["id"], row["note"], row["kind"]) for row in rows] == [(1, "o", "none"), (1 << 40, None, "k"), (1, "o", "none")]
    assert all("gone" not in row for row in rows)


def test_a_schema_that_nobody_has_seen_is_fetched_and_counts_as_no_restart(
    kafka: Cluster, registry: Schemas, read: Callable[..., Rows]
) -> None:
    topic = kafka.topic()
    known = record(("id", "long"), name="Event")
    later = record(("id", "int"), ("more", "string"), name="Event")
    ids = registry.register(f"{topic}-value", known), registry.register(f"elsewhere-{topic}", later)
    kafka.send(topic, [avro(ids[0], known, {"id": 1}), avro(ids[1], later, {"id": 2, "more": "m"}), avro(ids[0], known, {"id": 3})])
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}'", more=", restart: {limit: 0}")
    assert rows == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_a_restart_needs_no_registry_and_keeps_the_columns(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    first = record(("id", "long"), name="Event")
    id_ = registry.register(f"{topic}-value", first)
    kafka.send(topic, [avro(id_, first, {"id": 1})])
    read(f"topic: {topic}, schema_registry: '{registry.url}'", endless=True)
    registry.register(f"{topic}-value", record(("id", "long"), ("new", "string", "x"), name="Event"))
    kafka.send(topic, [avro(id_, first, {"id": 2})])
    rows = read(f"topic: {topic}, schema_registry: 'http://127.0.0.1:9'", endless=True)
    assert rows == [{"id": 1}, {"id": 2}]


def test_the_pinned_schema_reads_what_newer_writers_write(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic, options = kafka.topic(), f"schema_registry: '{registry.url}'"
    first = record(("id", "long"), ("left", "string", "none"), name="Event")
    second = record(("id", "int"), ("added", "string", ""), name="Event")
    kafka.send(topic, [avro(registry.register(f"{topic}-value", first), first, {"id": 1, "left": "l"})])
    read(f"topic: {topic}, {options}", endless=True)
    kafka.send(topic, [avro(registry.register(f"elsewhere-{topic}", second), second, {"id": 2, "added": "a"})])
    assert read(f"topic: {topic}, {options}", endless=True) == [{"id": 1, "left": "l"}, {"id": 2, "left": "none"}]


def test_columns_may_be_chosen_and_converted(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    schema = record(("id", "int"), ("name", "string"), ("other", "string"))
    kafka.send(topic, [avro(registry.register(f"{topic}-value", schema), schema, {"id": 1, "name": "a", "other": "o"})])
    assert read(f"topic: {topic}, schema_registry: '{registry.url}', schema: {{name: string, id: string}}") == [{"name": "a", "id": "1"}]


def test_keys_and_values_in_avro_with_subjects_of_their_own(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    key, value = record(("id", "long")), record(("name", "string"), name="com.acme.Named")
    ids = registry.register(f"{topic}-key", key), registry.register("com.acme.Named", value)
    kafka.send(topic, [avro(ids[1], value, {"name": "a"})], key=avro(ids[0], key, {"id": 7}))
    options = f"topic: {topic}, schema_registry: '{registry.url}', key_format: avro, subject_strategy: record, record: com.acme.Named"
    assert read(options) == [{"id": 7, "name": "a"}]


def test_plain_keys_are_one_column(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    value = record(("name", "string"))
    ids = registry.register(f"{topic}-key", '"long"'), registry.register(f"{topic}-value", value)
    kafka.send(topic, [avro(ids[1], value, {"name": "a"})], key=avro(ids[0], "long", 7))
    assert read(f"topic: {topic}, schema_registry: '{registry.url}', key_format: avro, key: {{id: int64}}") == [{"id": 7, "name": "a"}]


def test_tombstones_delete_by_an_avro_key(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    key, value = record(("id", "long")), record(("name", "string"))
    ids = registry.register(f"{topic}-key", key), registry.register(f"{topic}-value", value)
    kafka.send(topic, [avro(ids[1], value, {"name": "a"}), None], key=avro(ids[0], key, {"id": 7}))
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}', key_format: avro, tombstones: delete")
    assert [(row["id"], row.get("name"), row["_op"]) for row in rows] == [(7, "a", "i"), (7, None, "d")]


def test_debezium_envelopes_in_avro(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    topic = kafka.topic()
    row = record(("id", "long"), ("name", ["null", "string"], None), name="Value")
    source = ("source", record(("db", "string"), name="Source"))
    envelope = record(("before", ["null", row], None), ("after", ["null", "Value"], None), source, ("op", "string"), name="Envelope")
    id_ = registry.register(f"{topic}-value", envelope)
    one, two = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    states = [(None, one, "c"), (one, two, "u"), (two, None, "d")]
    changes = [{"before": old, "after": new, "op": op, "source": {"db": "d"}} for old, new, op in states]
    kafka.send(topic, [*[avro(id_, envelope, change) for change in changes], None])
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}', envelope: debezium")
    assert [(row["id"], row["name"], row["_op"], row["_seq"]) for row in rows] == [(1, "a", "i", 0), (1, "b", "u", 1), (1, "b", "d", 2)]


def test_a_schema_may_take_types_from_another_subject(kafka: Cluster, registry: Schemas, read: Callable[..., Rows]) -> None:
    from millstream.clients.registered_schemas import Reference, Schema

    topic = kafka.topic()
    inner = record(("street", "string"), name="com.acme.Address")
    registry.register(f"address-{topic}", inner)
    text = '{"type": "record", "name": "Person", "namespace": "com.acme", "fields": [{"name": "home", "type": "Address"}]}'
    schema = Schema(text, "AVRO", (Reference("com.acme.Address", f"address-{topic}", 1),))
    id_ = registry.client.register(f"{topic}-value", schema)
    whole = record(("home", inner), name="com.acme.Person")
    kafka.send(topic, [avro(id_, whole, {"home": {"street": "s"}})])
    assert read(f"topic: {topic}, schema_registry: '{registry.url}'") == [{"home": {"street": "s"}}]
