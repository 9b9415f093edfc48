"""The data of a schema registry as plain objects, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one refers to."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema's text. The schema of an id never changes."""

    text: str
    kind: Kind = "AVRO"
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema


def schema_from(answer: Mapping[str, Any]) -> Schema:
    references = tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in answer.get("references") or [])
    return Schema(str(answer["schema"]), answer.get("schemaType") or "AVRO", references)


def body_of(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.kind}
    if schema.references:
        body["references"] = [{"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references]
    return body
