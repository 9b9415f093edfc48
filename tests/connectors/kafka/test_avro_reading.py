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
    first = record(("id", "int"), ("gone", "string"), name="Order")
    second = record(("id", "long"), ("note", ["null", "string"], None), ("kind", "string", "none"), name="Order")
    ids = [registry.register(subject, first), registry.register(subject, second)]
    messages = [avro(ids[0], first, {"id": 1, "gone": "x"}), avro(ids[1], second, {"id": 1 << 40, "note": "n", "kind": "k"})]
    kafka.send(topic, [*messages, messages[0]])
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}'")
    assert [(row["id"], row.get("note"), row["kind"]) for row in rows] == [(1, None, "none"), (1 << 40, "n", "k"), (1, None, "none")]
    assert all("gone" not in row for row in rows)
