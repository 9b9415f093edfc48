"""Messages of about 200 bytes for the Kafka benches: JSON, or Avro in the registry's wire format."""

from __future__ import annotations

import json
import sys
import urllib.request

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # the package does not list its names

COLUMNS = {"id": "int64", "user": "string", "amount": "float64", "at": "timestamp", "country": "string", "note": "string"}
NOTE = "the quick brown fox jumps over the lazy dog and runs on through the wood " * 2
_FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "user", "type": "string"},
    {"name": "amount", "type": "double"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "country", "type": "string"},
    {"name": "note", "type": "string"},
]
AVRO = json.dumps({"type": "record", "name": "Row", "fields": _FIELDS})
_COUNTRIES = ("NL", "DE", "FR", "JP")


def new_topic(address: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})  # held: its answers end with it
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(20)


def fill(address: str, topic: str, rows: int, registry: str = "") -> None:
    """Rows, spread over the partitions in turn."""
    value = _avro(_register(registry, topic)) if registry else _json
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "batch.size": 1 << 20, "queue.buffering.max.messages": 1 << 20})
    for number in range(rows):
        producer.produce(topic, value(number), _COUNTRIES[number & 3], partition=number & 3)
        if number % 10_000 == 0:
            producer.poll(0)
            while len(producer) > 500_000:
                producer.poll(0.01)
    if producer.flush(120):
        raise RuntimeError("the broker does not take the rows")


def _json(number: int) -> str:
    at = f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
    who = f'"user":"user-{number % 10_007}","country":"{_COUNTRIES[number & 3]}"'
    return f'{{"id":{number},"amount":{number % 1000}.25,"at":"{at}",{who},"note":"{NOTE[number % 50 :][:95]}"}}'


def _avro(id_: int):  # type: ignore[no-untyped-def]  # a closure over the encoder
    """Fixed parts are written once; only numbers and texts differ."""
    import struct

    head = b"\x00" + struct.pack(">I", id_)

    def encode(number: int) -> bytes:
        user, note = f"user-{number % 10_007}".encode(), NOTE[number % 50 :][:150].encode()
        numbers = _long(number), struct.pack("<d", number % 1000 + 0.25), _long(1_767_225_600_000_000 + number * 1_000_000)
        texts = [_long(len(text)) + text for text in (user, _COUNTRIES[number & 3].encode(), note)]
        return head + numbers[0] + texts[0] + numbers[1] + numbers[2] + texts[1] + texts[2]

    return encode


def _long(value: int) -> bytes:
    """Avro's zigzag number."""
    left, out = value << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _register(registry: str, topic: str) -> int:
    body = json.dumps({"schema": AVRO}).encode()
    request = urllib.request.Request(f"{registry}/subjects/{topic}-value/versions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return int(json.load(answer)["id"])


if __name__ == "__main__":
    new_topic(sys.argv[1], sys.argv[2], 4)
    fill(sys.argv[1], sys.argv[2], int(sys.argv[3]))
