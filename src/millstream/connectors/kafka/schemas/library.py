"""The schemas of one part of a source's messages: from the registry once, then from the checkpoint.

The schema of an id never changes, so each schema is stored in the source's folder of the checkpoint, complete with the types of other
subjects that it uses. A pipeline that has run before can restart while the registry is down. The reader's schema, which defines the
columns, is the subject's latest at the first start; it is pinned there too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.clients.registered_schemas import Schema, Version
from millstream.clients.schema_registry import SchemaRegistry
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError, nearest
from millstream.formats import avro, protoc

_NEWEST = 50
"""How many versions of a subject are fetched before a message needs them."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema in one text, and its id."""

    id: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Library:
    """Schemas by their ids."""

    registry: SchemaRegistry
    storage: Storage
    subjects: tuple[str, ...]

    def pinned(self) -> StoredSchema | None:
        """The reader's schema, after the first start."""
        found = self.storage.read("reader.json")
        return StoredSchema(**json.loads(found)) if found is not None else None

    def pin(self, fits: Callable[[StoredSchema], bool]) -> StoredSchema:
        """Pin the reader's schema: the newest whose columns are those that the run was checked with."""
        chosen = self.pinned() or next((known for known in self.newest() if fits(known)), None) or self.latest()
        self._keep(chosen)
        self.storage.put_once("reader.json", json.dumps({"id": chosen.id, "kind": chosen.kind, "text": chosen.text}).encode())
        return self.pinned() or chosen

    def latest(self) -> StoredSchema:
        """The newest schema of the first subject that exists."""
        for subject in self.subjects:
            version = self.registry.version(subject)
            if version is not None:
                return self.resolve(version.id, version.schema)
        known = self.registry.subjects()
        message = f"the schema registry has no subject `{self.subjects[0] if self.subjects else ''}`"
        help_ = nearest(self.subjects[0], known) if self.subjects and known else "check that a schema was registered for the topic"
        raise RunError(Diagnostic("MS102", message, help=help_))

    def newest(self) -> Iterator[StoredSchema]:
        """The versions of the first subject, newest first."""
        for number in reversed(self.registry.versions(self.subjects[0])[-_NEWEST:]):
            version = self.registry.version(self.subjects[0], number)
            if version is not None:
                yield self.resolve(version.id, version.schema)

    def refresh(self) -> None:
        """Fetch the newest versions of all subjects. A registry that is down is ignored when the reader is pinned."""
        try:
            for subject in self.subjects:
                self._learn(subject)
        except TemporaryError:
            if self.pinned() is None:
                raise

    def look_up(self, id_: int) -> bool:
        """Whether a schema of that id exists; it is stored then."""
        if self.storage.exists(f"ids/{id_}.json"):
            return True
        found = self.registry.schema(id_)
        if found is not None:
            self._keep(self.resolve(id_, found))
        return found is not None

    def stored_texts(self) -> dict[int, str]:
        """Id → text of every stored schema."""
        return {int(name.removesuffix(".json")): self._read(name)["text"] for name in self.storage.names("ids") if name.endswith(".json")}

    def _learn(self, subject: str) -> None:
        place = f"subjects/{subject.replace('/', '%2F')}.json"
        seen: dict[str, int] = json.loads(self.storage.read(place) or b"{}")
        new = [number for number in self.registry.versions(subject)[-_NEWEST:] if str(number) not in seen]
        found: Sequence[Version | None] = [self.registry.version(subject, number) for number in new]
        learnt = {str(version.version): self._keep(self.resolve(version.id, version.schema)) for version in found if version is not None}
        if learnt:
            self.storage.put(place, json.dumps(seen | learnt).encode())

    def resolve(self, id_: int, schema: Schema) -> StoredSchema:
        """A schema in one text, with all its references."""
        if schema.kind == "PROTOBUF":
            return StoredSchema(id_, schema.kind, base64.b64encode(self.descriptors(schema)).decode())
        return StoredSchema(id_, schema.kind, self._complete(schema).text() if schema.kind == "AVRO" else schema.text)

    def descriptors(self, schema: Schema) -> bytes:
        """A Protobuf schema, compiled with its imports."""
        try:
            return protoc.compile_schema(schema.text, self._imports(schema))
        except ImportError:
            message = "`format: protobuf` needs the Protobuf compiler"
            raise SetupError(Diagnostic("MS042", message, help="`pip install 'millstream[protobuf]'`")) from None
        except ValueError as error:
            raise RunError(Diagnostic("MS105", f"a schema of subject `{', '.join(self.subjects)}`: {error}")) from None

    def _imports(self, schema: Schema) -> dict[str, str]:
        found: dict[str, str] = {}
        for reference in schema.references:
            version = self.registry.version(reference.subject, reference.version)
            if version is not None:
                found |= {reference.name: version.schema.text, **self._imports(version.schema)}
        return found

    def _keep(self, known: StoredSchema) -> int:
        self.storage.put_once(f"ids/{known.id}.json", json.dumps({"kind": known.kind, "text": known.text}).encode())
        return known.id

    def _complete(self, schema: Schema) -> avro.AvroSchema:
        """With the types of other subjects that it uses."""
        others = []
        for reference in schema.references:
            version = self.registry.version(reference.subject, reference.version)
            if version is not None:
                others.append(self._complete(version.schema))
        try:
            return avro.parse(schema.text, others)
        except (ValueError, KeyError) as error:
            message = f"a schema of subject `{', '.join(self.subjects)}` is not one that can be read: {error}"
            raise RunError(Diagnostic("MS105", message)) from None

    def _read(self, name: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.storage.read(f"ids/{name}") or b"{}")
        return found
