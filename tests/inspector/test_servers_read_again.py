"""Messages of Kafka and changes of Postgres are read again between the offsets of an epoch, and every row is still delivered once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.inspector.started import rows, running_pipeline, wait_for
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database

from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
name: orders
{head}
sources:
  g: {{{source}}}
transforms:
  watched: {{type: filter, from: g, where: id >= 0}}
  below: {{type: with_columns, from: watched, columns: {{label: "concat('n', id)"}}}}
sinks:
  out: {{type: file, from: below, path: out, format: parquet}}
"""


@contextmanager
def repeated(act: Callable[[int], None]) -> Iterator[None]:
    """Something is done a few times a second."""
    ended = threading.Event()

    def go() -> None:
        for number in range(1000):
            if ended.wait(0.2):
                return
            act(number)

    acting = threading.Thread(target=go)
    acting.start()
    try:
        yield
    finally:
        ended.set()
        acting.join()


def tap(spark: Any, topology: Topology, warm: Callable[..., Any]) -> list[dict[str, Any]]:
    with running_pipeline(spark, topology) as running:
        wait_for(5)
        shown = warm("tap", "orders", "g", "--where", "id % 2 = 1", "--limit", "3")
        assert "are read again" in shown.stderr, shown.stderr
        wait_for(len(rows()) + 3)
        warm("stop", "orders")
        running.end()
    assert rows() == list(range(len(rows()))), "each row once"
    found = [json.loads(row) for row in shown.stdout.splitlines()]
    assert len(found) == 3
    assert all(row["id"] % 2 == 1 for row in found)
    return found


def test_kafka(kafka: Cluster, pipeline: Callable[..., Topology], spark: Any, sockets: Any, warm: Callable[..., Any]) -> None:
    topic = kafka.topic()
    kafka.send(topic, [{"id": 0}])
    source = f"type: kafka, topic: {topic}, bootstrap_servers: '{kafka.address}', format: json, schema: {{id: bigint}}"
    with repeated(lambda number: kafka.send(topic, [{"id": 2 * number + 1}, {"id": 2 * number + 2}])):
        tap(spark, pipeline(TEXT.format(head="", source=source)), warm)


def test_changes_of_postgres(
    postgres: Database, pipeline: Callable[..., Topology], spark: Any, sockets: Any, warm: Callable[..., Any]
) -> None:
    table = f"{postgres.schema()}.t"
    postgres.run(f"CREATE TABLE {table} (id bigint PRIMARY KEY)", f"INSERT INTO {table} VALUES (0)")
    source = f"type: postgres, table: {table}, mode: {{type: cdc}}"
    head = f"connections: {{postgres: {postgres.connection}}}"
    with repeated(lambda number: postgres.run(f"INSERT INTO {table} VALUES ({2 * number + 1}), ({2 * number + 2})")):
        found = tap(spark, pipeline(TEXT.format(head=head, source=source)), warm)
    assert all(row["_op"] == "i" for row in found)
