"""Kafka → Millstream → Kafka in Avro and JSON Schema, with another client's serializers as the judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from tests.servers.kafka import Cluster
from tests.servers.registry import Schemas, record

from millstream.errors import RunError
from millstream.formats.avro import parse
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # the other client's own
TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}", schema_registry: "{url}"}}}}
    sources:
      m: {{type: kafka, topic: {topic}, mode: {{type: bounded}}{source}}}
    transforms:
      rows: {{type: sql, sql: "{sql}"}}
    sinks:
      out: {{type: kafka, from: rows, topic: {target}, {sink}}}
"""
EVERYTHING = record(
    ("flag", "boolean"),
    ("small", "int"),
    ("large", "long"),
    ("single", "float"),
    ("double", "double"),
    ("text", "string"),
    ("raw", "bytes"),
    ("day", {"type": "int", "logicalType": "date"}),
    ("clock", {"type": "int", "logicalType": "time-millis"}),
    ("clock6", {"type": "long", "logicalType": "time-micros"}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("at6", {"type": "long", "logicalType": "timestamp-micros"}),
    ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}),
    ("exact", {"type": "fixed", "name": "Exact", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 3}),
    ("mark", {"type": "fixed", "name": "Mark", "size": 3}),
    ("id", {"type": "string", "logicalType": "uuid"}),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    ("list", {"type": "array", "items": "long"}),
    ("map", {"type": "map", "values": "int"}),
    ("inner", record(("x", "int"), ("again", ["null", "Kind"], None), name="Inner")),
    ("maybe", ["null", "string"], None),
    ("number", ["int", "long"]),
    ("mixed", ["null", "string", "long"], None),
    name="Everything",
    namespace="com.acme",
)
MOMENT = datetime(2026, 3, 4, 5, 6, 7, 891000, UTC)
ROW = {
    "flag": True,
    "small": -1,
    "large": 1 << 60,
    "single": 0.5,
    "double": 1e300,
    "text": "é",
    "raw": b"\x00\xff",
    "day": date(2026, 3, 4),
    "clock": time(1, 2, 3, 4000),
    "clock6": time(1, 2, 3, 4),
    "at": MOMENT,
    "at6": MOMENT,
    "local": datetime(2026, 3, 4, 5, 6, 7, 8),
    "amount": Decimal("-123.45"),
    "exact": Decimal("7.125"),
    "mark": b"abc",
    "id": "9f7a8a9e-5b0d-4f1e-8a39-0c1d2e3f4a5b",
    "kind": "B",
    "list": [1, 2],
    "map": {"a": 1},
    "inner": {"x": 5, "again": "A"},
    "maybe": None,
    "number": 7,
    "mixed": 9,
}


@pytest.fixture
def through(kafka: Cluster, registry: Schemas, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., list[Any]]:
    """Run a topic's messages through a pipeline, and give those that arrive."""

    def go(topic: str, sink: str, source: str = "", sql: str = "SELECT * FROM m", target: str = "", name: str = "p") -> list[Any]:
        target = target or kafka.topic()
        places = {"address": kafka.address, "url": registry.url, "topic": topic, "target": target}
        run(pipeline(TEXT.format(**places, source=source, sink=sink, sql=sql), name))
        return kafka.messages(target)

    return go


def _write(kafka: Cluster, client: SchemaRegistryClient, topic: str, schema: Any, rows: list[Any]) -> None:
    serializer = AvroSerializer(client, json.dumps(schema))
    kafka.send(topic, [serializer(row, SerializationContext(topic, MessageField.VALUE)) for row in rows])


def _read(client: SchemaRegistryClient, message: Any) -> Any:
    return AvroDeserializer(client)(message.value(), SerializationContext(message.topic(), MessageField.VALUE))


def test_every_type_survives_the_round_trip(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    client, topic = SchemaRegistryClient({"url": registry.url}), kafka.topic()
    _write(kafka, client, topic, EVERYTHING, [ROW, {**ROW, "maybe": "m", "mixed": "text"}])
    rows = [_read(client, message) for message in through(topic, "format: avro")]
    clocks = {"clock": 3723004, "clock6": 3723000004}  # times of day are numbers
    first = {**ROW, **clocks, "mixed": {"member0": None, "member1": 9}}
    assert rows[0] == first
    assert rows[1] == {**first, "maybe": "m", "mixed": {"member0": "text", "member1": None}}


def test_the_columns_of_a_check_are_those_of_spark(spark: SparkSession) -> None:
    text, jvm = json.dumps(EVERYTHING), spark._jvm
    kind = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(jvm.org.apache.avro.Schema.Parser().parse(text)).dataType()
    theirs = StructType.fromJson(json.loads(kind.json()))
    ours = from_arrow_schema(parse(text).columns(), prefer_timestamp_ntz=True)
    assert _described(ours) == _described(theirs)


def _described(struct: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in struct]


def test_keys_and_the_primary_key_are_in_the_registry(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    client, topic, target = SchemaRegistryClient({"url": registry.url}), kafka.topic(), kafka.topic()
    _write(kafka, client, topic, record(("id", "long"), ("name", "string")), [{"id": 7, "name": "a"}])
    (message,) = through(topic, "format: avro, key: id, key_format: avro", target=target)
    key = AvroDeserializer(client)(message.key(), SerializationContext(target, MessageField.KEY))
    assert (key, _read(client, message)) == ({"id": 7}, {"id": 7, "name": "a"})
    found = registry.client.version(f"{target}-value")
    assert found is not None and json.loads(json.loads(found.schema.text)["doc"]) == {"primaryKeys": ["id"]}


def test_the_same_columns_are_registered_once_and_new_ones_make_a_version(
    kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]
) -> None:
    client, topic, target = SchemaRegistryClient({"url": registry.url}), kafka.topic(), kafka.topic()
    _write(kafka, client, topic, record(("id", "long")), [{"id": 1}])
    through(topic, "format: avro", target=target, name="a")
    through(topic, "format: avro", target=target, name="b")
    assert registry.client.versions(f"{target}-value") == [1]
    messages = through(topic, "format: avro", sql="SELECT *, 'x' AS more FROM m", target=target, name="c")
    assert registry.client.versions(f"{target}-value") == [1, 2]
    assert [_read(client, message) for message in messages] == [{"id": 1}, {"id": 1}, {"id": 1, "more": "x"}]


def test_a_schema_that_the_registry_refuses_is_told_with_the_differences(
    kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]
) -> None:
    topic, target = kafka.topic(), kafka.topic()
    registry.register(f"{target}-value", record(("id", "string"), ("old", "string"), name=f"{target}_value"))
    _write(kafka, SchemaRegistryClient({"url": registry.url}), topic, record(("id", "long")), [{"id": 1}])
    with pytest.raises(RunError) as refused:
        through(topic, "format: avro", target=target)
    (found,) = refused.value.diagnostics
    assert (found.code, f"`{target}-value`" in found.message) == ("MS104", True)
    assert "`id` was string and is null or long" in found.detail
    assert "`old` is gone" in found.detail
    assert kafka.messages(target) == []


def test_without_registering_the_latest_schema_is_written(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    client, topic, target = SchemaRegistryClient({"url": registry.url}), kafka.topic(), kafka.topic()
    _write(kafka, client, topic, record(("id", "long"), ("name", "string")), [{"id": 1, "name": "a"}])
    with pytest.raises(RunError, match=f"no subject `{target}-value`"):
        through(topic, "format: avro, register: false", target=target, name="a")
    registry.register(f"{target}-value", record(("id", "long"), ("name", ["null", "string"], None), name="Theirs"))
    (message,) = through(topic, "format: avro, register: false", target=target, name="b")
    assert _read(client, message) == {"id": 1, "name": "a"}
    with pytest.raises(RunError, match="it has no field `more`"):
        through(topic, "format: avro, register: false", sql="SELECT *, 1 AS more FROM m", target=target, name="c")
    assert registry.client.versions(f"{target}-value") == [1]


def test_what_avro_cannot_hold_is_told(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    topic = kafka.topic()
    _write(kafka, SchemaRegistryClient({"url": registry.url}), topic, record(("id", "long")), [{"id": 1}])
    with pytest.raises(RunError, match="`a b` is not a valid name in Avro"):
        through(topic, "format: avro", sql="SELECT id AS `a b` FROM m")


def test_json_schema_goes_round(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    client, topic = SchemaRegistryClient({"url": registry.url}), kafka.topic()
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    properties = {"id": {"type": "integer"}, "price": {"type": ["null", "number"]}, "at": {"type": "string", "format": "date-time"}}
    more = {"tags": {"type": "array", "items": {"type": "string"}}, "inner": {"$ref": "#/definitions/inner"}}
    schema = {"title": "Item", "type": "object", "properties": {**properties, **more}, "definitions": {"inner": inner}}
    row = {"id": 1, "price": 2.5, "at": "2026-03-04T05:06:07Z", "tags": ["a"], "inner": {"x": 3}}
    serializer = JSONSerializer(json.dumps(schema), client)
    kafka.send(topic, [serializer(row, SerializationContext(topic, MessageField.VALUE))])
    (message,) = through(topic, "format: json_schema", ", format: json_schema")
    found = JSONDeserializer(None, schema_registry_client=client)(
        message.value(), SerializationContext(message.topic(), MessageField.VALUE)
    )
    assert found == {**row, "at": "2026-03-04T05:06:07.000Z"}


def test_the_primary_key_in_the_documentation_keys_the_sink(kafka: Cluster, registry: Schemas, through: Callable[..., list[Any]]) -> None:
    client, topic = SchemaRegistryClient({"url": registry.url}), kafka.topic()
    documented = record(("id", "long"), ("name", "string"), doc=json.dumps({"primaryKeys": ["id"]}))
    _write(kafka, client, topic, documented, [{"id": 7, "name": "a"}])
    (message,) = through(topic, "format: json", sql="SELECT id, upper(name) AS name FROM m")
    assert (message.key(), json.loads(message.value())) == (b"7", {"id": 7, "name": "A"})
    (keyless,) = through(topic, "format: json", sql="SELECT name FROM m", name="q")
    assert keyless.key() is None
