"""The schemas that one part of a source's messages was written with: from the registry once, from the checkpoint ever after.

What an id stands for never changes, so each schema is kept in the source's folder of the checkpoint, complete with the types that it
takes from other subjects. A pipeline that has run before starts again with the registry down. The reader's schema, which makes the
columns, is the subject's latest at the first start; it is pinned there too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.clients.schemaregistry import SchemaRegistry
from millstream.clients.schemas import Schema, Version
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError, SetupError, TransientError, nearest
from millstream.formats import avro, protoc

_NEWEST = 50
"""So many versions of a subject are known before a message needs them."""


@dataclass(frozen=True, slots=True)
class Known:
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

    def pinned(self) -> Known | None:
        """The reader's schema, once a run has begun."""
        found = self.storage.read("reader.json")
        return Known(**json.loads(found)) if found is not None else None

    def pin(self, fits: Callable[[Known], bool]) -> Known:
        """The reader's schema for good: the newest whose columns are those that the run was checked with."""
        chosen = self.pinned() or next((known for known in self.newest() if fits(known)), None) or self.latest()
        self._keep(chosen)
        self.storage.put_once("reader.json", json.dumps({"id": chosen.id, "kind": chosen.kind, "text": chosen.text}).encode())
        return self.pinned() or chosen

    def latest(self) -> Known:
        """The newest schema of the first subject that is there."""
        for subject in self.subjects:
            version = self.registry.version(subject)
            if version is not None:
                return self.found(version.id, version.schema)
        known = self.registry.subjects()
        message = f"the schema registry has no subject `{self.subjects[0] if self.subjects else ''}`"
        help_ = nearest(self.subjects[0], known) if self.subjects and known else "has anything been registered for the topic?"
        raise RunError(Diagnostic("MS102", message, help=help_))

    def newest(self) -> Iterator[Known]:
        """The versions of the first subject, newest first."""
        for number in reversed(self.registry.versions(self.subjects[0])[-_NEWEST:]):
            version = self.registry.version(self.subjects[0], number)
            if version is not None:
                yield self.found(version.id, version.schema)

    def refresh(self) -> None:
        """Learn the newest versions of all subjects. A registry that is down is no reason to stop, once the reader is pinned."""
        try:
            for subject in self.subjects:
                self._learn(subject)
        except TransientError:
            if self.pinned() is None:
                raise

    def look_up(self, id_: int) -> bool:
        """Whether there is a schema of that id; it is kept then."""
        if self.storage.exists(f"ids/{id_}.json"):
            return True
        found = self.registry.schema(id_)
        if found is not None:
            self._keep(self.found(id_, found))
        return found is not None

    def known(self) -> dict[int, str]:
        """Id → text of every schema that is kept."""
        return {int(name.removesuffix(".json")): self._read(name)["text"] for name in self.storage.names("ids") if name.endswith(".json")}

    def _learn(self, subject: str) -> None:
        place = f"subjects/{subject.replace('/', '%2F')}.json"
        seen: dict[str, int] = json.loads(self.storage.read(place) or b"{}")
        new = [number for number in self.registry.versions(subject)[-_NEWEST:] if str(number) not in seen]
        found: Sequence[Version | None] = [self.registry.version(subject, number) for number in new]
        learnt = {str(version.version): self._keep(self.found(version.id, version.schema)) for version in found if version is not None}
        if learnt:
            self.storage.put(place, json.dumps(seen | learnt).encode())

    def found(self, id_: int, schema: Schema) -> Known:
        """A schema in one text, with all that it takes from others."""
        if schema.kind == "PROTOBUF":
            return Known(id_, schema.kind, base64.b64encode(self.descriptors(schema)).decode())
        return Known(id_, schema.kind, self._complete(schema).text() if schema.kind == "AVRO" else schema.text)

    def descriptors(self, schema: Schema) -> bytes:
        """A Protobuf schema, compiled with what it imports."""
        try:
            return protoc.compiled(schema.text, self._imports(schema))
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

    def _keep(self, known: Known) -> int:
        self.storage.put_once(f"ids/{known.id}.json", json.dumps({"kind": known.kind, "text": known.text}).encode())
        return known.id

    def _complete(self, schema: Schema) -> avro.AvroSchema:
        """With the types that it takes from other subjects."""
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
