"""A real schema registry for a whole test run, and producers of messages that go by it."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import pytest

from millstream.clients.registered_schemas import Schema
from millstream.clients.schema_registry import SchemaRegistry
from millstream.dev.registry import Registry, start_registry
from millstream.errors import SetupError


@dataclass
class Schemas:
    """The registry, seen from outside."""

    server: Registry

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def client(self) -> SchemaRegistry:
        return SchemaRegistry((self.url,))

    def register(self, subject: str, schema: Any, kind: Any = "AVRO") -> int:
        return self.client.register(subject, Schema(schema if isinstance(schema, str) else json.dumps(schema), kind))


def record(*fields: Any, name: str = "", **more: Any) -> dict[str, Any]:
    """A record: fields as `("a", "long")` or `("a", type, default)`. Its name makes the schema, and so its id, one of its own."""
    shaped = [dict(zip(("name", "type", "default"), each, strict=False)) for each in fields]
    return {"type": "record", "name": name or f"R{uuid.uuid4().hex[:8]}", "fields": shaped, **more}


def avro(id_: int, schema: Any, value: Any) -> bytes:
    """A message: the zero byte, the id, and the value in Avro."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return struct.pack(">bI", 0, id_) + out.getvalue()


@pytest.fixture(scope="session")
def registry() -> Iterator[Schemas]:
    """One registry for the whole run."""
    try:
        server = start_registry(progress=print)
    except SetupError as error:
        if error.diagnostics[0].code != "MS042":
            raise
        pytest.skip(f"the registry's archive is not here and cannot be fetched: {error.diagnostics[0].message}")
    with server:
        yield Schemas(server)
