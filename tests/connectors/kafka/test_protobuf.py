"""Protobuf in and out, with another client's serializers as the judge."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from tests.servers.kafka import Cluster
from tests.servers.registry import Schemas

from millstream.formats import protobuf, protobuf_writer, protoc
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # the other client's own
Rows = list[dict[str, Any]]
ORDERS = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Other { string text = 1; }
message Order {
  enum Kind { NONE = 0; GIFT = 1; }
  message Line { string article = 1; int32 count = 2; }
  int64 id = 1;
  optional string note = 2;
  Kind kind = 3;
  repeated Line lines = 4;
  map<string, double> prices = 5;
  google.protobuf.Timestamp at = 6;
  uint64 large = 7;
  bytes raw = 8;
}
"""
ROW = {"id": 1, "kind": "GIFT", "lines": [{"article": "a", "count": 2}], "prices": {"a": 1.5}, "large": 1 << 63}


@pytest.fixture
def orders() -> Any:
    compiled = protoc.compile_schema(ORDERS, {})
    message = GetMessageClass(protobuf.message_of(compiled, "shop.Order"))()
    message.id, message.kind, message.large, message.raw = 1, 1, 1 << 63, b"\xff"
    message.lines.add(article="a", count=2)
    message.prices["a"] = 1.5
    message.at.seconds = 1_700_000_000
    return message


def _sent(kafka: Cluster, registry: Schemas, message: Any, topic: str) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    serializer = ProtobufSerializer(type(message), client, {"use.deprecated.format": False, "skip.known.types": True})
    kafka.send(topic, [serializer(message, SerializationContext(topic, MessageField.VALUE))])


def test_the_second_message_of_a_file_is_read_by_its_name(
    kafka: Cluster, registry: Schemas, read: Callable[..., Rows], orders: Any, tmp_path: Path
) -> None:
    topic = kafka.topic()
    _sent(kafka, registry, orders, topic)
    other = GetMessageClass(protobuf.message_of(protoc.compile_schema(ORDERS, {}), "shop.Other"))(text="x").SerializeToString()
    kafka.send(topic, [b"\x00\x00\x00\x00\x01\x00" + other, b"\x00\x00\x00\x00\x01\x02\x02\xff\xff", b"no"])
    rows = read(f"topic: {topic}, schema_registry: '{registry.url}', format: protobuf, record: shop.Order", isolate=True)
    assert rows == [{**ROW, "note": None, "at": "2023-11-14T22:13:20.000000Z", "raw": "/w=="}]
    letters = [json.loads(line) for file in (tmp_path / "letters").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted(json.loads(letter["raw"])["offset"] for letter in letters) == [1, 2, 3]


def test_messages_go_round(
    kafka: Cluster, registry: Schemas, pipeline: Callable[..., Topology], run: Callable[..., Report], orders: Any
) -> None:
    topic, target = kafka.topic(), kafka.topic()
    _sent(kafka, registry, orders, topic)
    text = f"""
        connections: {{kafka: {{bootstrap_servers: "{kafka.address}", schema_registry: "{registry.url}"}}}}
        sources:
          m: {{type: kafka, topic: {topic}, format: protobuf, record: shop.Order, mode: {{type: bounded}}}}
        sinks:
          out: {{type: kafka, from: m, topic: {target}, format: protobuf, record: shop.Copy}}
    """
    run(pipeline(text))
    found = registry.client.version(f"{target}-value")
    assert found is not None
    copy = GetMessageClass(protobuf.message_of(protoc.compile_schema(found.schema.text, {}), "shop.Copy"))
    judge = ProtobufDeserializer(copy, {"use.deprecated.format": False})
    (message,) = kafka.messages(target)
    seen = judge(message.value(), SerializationContext(target, MessageField.VALUE))
    assert (seen.id, seen.kind, seen.lines[0].article, seen.lines[0].count, dict(seen.prices)) == (1, "GIFT", "a", 2, {"a": 1.5})
    assert (seen.at.seconds, Decimal(seen.large), seen.raw, seen.HasField("note")) == (1_700_000_000, 1 << 63, b"\xff", False)


def test_a_file_stands_for_the_registry(kafka: Cluster, read: Callable[..., Rows], orders: Any, tmp_path: Path) -> None:
    topic, text = kafka.topic(), ORDERS.replace("message Other { string text = 1; }", 'import "other.proto";')
    (tmp_path / "orders.proto").write_text(text)
    (tmp_path / "other.proto").write_text('syntax = "proto3"; message Other { string text = 1; }')
    kafka.send(topic, [orders.SerializeToString(), b"\xff\xff"])
    wanted = f"topic: {topic}, format: protobuf, schema_file: '{tmp_path}/orders.proto', schema: {{id: int64, kind: string}}"
    assert read(wanted, isolate=True) == [{"id": 1, "kind": "GIFT"}]
    (letter,) = [json.loads(line) for file in (tmp_path / "letters").glob("*.json") for line in file.read_text().splitlines()]
    assert json.loads(letter["raw"])["offset"] == 1


def test_a_file_that_is_no_schema_is_told(tmp_path: Path) -> None:
    from millstream.connectors.kafka.source import KafkaSource

    (tmp_path / "x.desc").write_bytes(b"\xff")
    for name, said in {"x.desc": "not a compiled schema", "y.proto": "cannot be read"}.items():
        source = KafkaSource(bootstrap_servers="h:1", topic="t", format="protobuf", schema_file=tmp_path / name)
        assert source.output() is None
        assert [said in problem.message for problem in source.problems({}, tmp_path)] == [True]


def test_numbers_stay_with_their_names() -> None:
    first = protobuf_writer.schema_of(pa.schema([("a", pa.int64()), ("b", pa.string())]), "x.R")
    before = protoc.compile_schema(first, {})
    second = protobuf_writer.schema_of(pa.schema([("c", pa.bool_()), ("b", pa.string())]), "x.R", before)
    assert "optional string b = 2;" in first and "optional string b = 2;" in second
    assert "optional bool c = 3;" in second


def test_the_compiled_schema_holds_its_imports() -> None:
    main = 'syntax = "proto3"; import "inner.proto"; message Outer { Inner inner = 1; }'
    compiled = protoc.compile_schema(main, {"inner.proto": 'syntax = "proto3"; message Inner { int32 x = 1; }'})
    assert protobuf.columns(compiled) == pa.schema([("inner", pa.struct([("x", pa.int32())]))])
    assert base64.b64encode(compiled)
    with pytest.raises(ValueError, match="compiler"):
        protoc.compile_schema("no proto", {})
