"""The trace that a message belongs to goes in as a column and out as a header."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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


TRACED = """
    name: shop
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      orders:
        {{type: kafka, topic: {source}, format: json, schema: {{id: int64}}, mode: {{type: bounded}}, telemetry: {{trace: {trace}}}}}
    transforms:
      some: {{type: sql, sql: "SELECT id FROM orders"}}
    sinks:
      out: {{type: kafka, from: some, topic: {target}, key: [id]}}
    settings: {{checkpoint: {target}}}
"""
UNSAMPLED = TRACE[:-1] + b"0"


def headers_of(kafka: Cluster, topic: str) -> list[bytes | None]:
    """The header of each message, by id."""
    found = {json.loads(message.value())["id"]: message for message in kafka.messages(topic)}
    assert {tuple(json.loads(message.value())) for message in found.values()} == {("id",)}
    return [dict(found[number].headers() or ()).get("traceparent") for number in sorted(found)]


def test_a_traced_record_continues_or_begins_a_trace(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    source, target = kafka.topic(), kafka.topic()
    for number, given in enumerate([TRACE, UNSAMPLED, b"no trace at all"]):
        kafka.send(source, [{"id": number}], headers={"traceparent": given})
    kafka.send(source, [{"id": 3}])
    run(pipeline(TRACED.format(address=kafka.address, source=source, target=target, trace="always")))
    continued, unsampled, begun, other = headers_of(kafka, target)
    assert continued is not None and begun is not None and other is not None
    assert continued[:36] == TRACE[:36] and continued[36:52] != TRACE[36:52] and continued.endswith(b"-01")
    assert unsampled == UNSAMPLED
    assert len({begun[3:35], other[3:35], TRACE[3:35]}) == 3


def test_a_record_has_the_same_header_when_it_is_read_again(
    kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    source, targets = kafka.topic(), [kafka.topic(), kafka.topic()]
    kafka.send(source, [{"id": number} for number in range(100)])
    for target in targets:
        run(pipeline(TRACED.format(address=kafka.address, source=source, target=target, trace="{ratio: 0.3}")))
    first, second = (headers_of(kafka, target) for target in targets)
    assert first == second
    traced = [header for header in first if header]
    assert 10 < len(traced) < 55 and len(set(traced)) == len(traced)


def test_equal_messages_have_traces_of_their_own(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    source, target = kafka.topic(), kafka.topic()
    kafka.send(source, [{"id": 7}, {"id": 7}])
    run(pipeline(TRACED.format(address=kafka.address, source=source, target=target, trace="always")))
    assert len({dict(message.headers()).get("traceparent") for message in kafka.messages(target)}) == 2


def test_a_dead_letter_of_a_traced_row_is_the_row(
    kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    source, target = kafka.topic(), kafka.topic()
    kafka.send(source, [{"id": 1}])
    text = TRACED.format(address=kafka.address, source=source, target=target, trace="always")
    text = text.replace(
        "key: [id]}", "key: [id], max_message_size: 80B, on_error: {dead_letter: bad}}\n      bad: {type: file, path: bad, format: json}"
    )
    run(pipeline(text))
    (letter,) = [json.loads(line) for file in (tmp_path / "bad").glob("*.json") for line in file.read_text().splitlines()]
    assert json.loads(letter["raw"]) == {"id": 1}
