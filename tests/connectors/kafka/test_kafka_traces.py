"""The trace that a message belongs to goes in as a column and out as a header."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.servers.kafka import Cluster

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      orders: {{type: kafka, topic: {source}, format: json, schema: {{id: int64}}, trace_context: true, mode: {{type: bounded}}}}
    transforms:
      some: {{type: sql, sql: "SELECT {columns} FROM orders"}}
    sinks:
      out: {{type: kafka, from: some, topic: {target}, key: [id]}}
"""


@pytest.mark.parametrize(("columns", "kept"), [("id, traceparent", True), ("id", False)])
def test_a_trace_goes_through(
    columns: str, kept: bool, kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    source, target = kafka.topic(), kafka.topic()
    kafka.send(source, [{"id": 1}], headers={"traceparent": TRACE})
    kafka.send(source, [{"id": 2}], headers={"traceparent": b"no trace at all"})
    kafka.send(source, [{"id": 3}])
    run(pipeline(TEXT.format(address=kafka.address, source=source, target=target, columns=columns)))
    found = {json.loads(message.value())["id"]: message for message in kafka.messages(target)}
    assert {tuple(json.loads(message.value())) for message in found.values()} == {("id",)}
    assert [dict(found[n].headers() or ()).get("traceparent") for n in (1, 2, 3)] == [TRACE if kept else None, None, None]
