"""The versions of one state store: the files that a version needs, and whether they are intact.

RocksDB keeps a snapshot now and then (`30.zip`, with its tables in `SSTs/`) and a changelog for every epoch; Spark's other store keeps
`30.snapshot` and deltas. A version is read from the last snapshot before it and every change since.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.checkpoint.checksums import mismatch
from millstream.checkpoint.inventory import Operator
from millstream.checkpoint.layout import damage_at
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic

_VERSION = re.compile(r"(\d+)(?:_[^.]*)?\.(zip|snapshot|changelog|delta)")
_WHOLE = {"zip", "snapshot"}


@dataclass(frozen=True, slots=True)
class StateStore:
    """One state store: the versions of one operator's state in one partition."""

    query: Storage
    operator: Operator
    partition: int
    name: str

    @property
    def folder(self) -> str:
        base = f"state/{self.operator.id}/{self.partition}"
        return base if self.name == "default" else f"{base}/{self.name}"

    def damages(self, version: int) -> Iterator[Diagnostic]:
        files = [(int(match[1]), match[2], name) for name in self.query.names(self.folder) if (match := _VERSION.fullmatch(name))]
        base = max((number for number, kind, _ in files if kind in _WHOLE and number <= version), default=0)
        for needed in range(max(1, base), version + 1):
            wanted = [name for number, kind, name in files if number == needed and (kind in _WHOLE) == (needed == base)]
            if not wanted:
                reason = f"the state of `{self.query.url.rpartition('/')[2]}` at epoch {version - 1} cannot be read without it"
                yield damage_at(f"{self.query.url}/{self.folder}/{needed}.changelog", f"it is missing, and {reason}")
            for name in wanted:
                yield from self._contents(name)

    def _contents(self, name: str) -> Iterator[Diagnostic]:
        path = f"{self.folder}/{name}"
        data = self.query.read(path) or b""
        reason = mismatch(data, self.query.read(f"{path}.crc"))
        if not reason and name.endswith(".zip"):
            reason = self._snapshot(data)
        if reason:
            yield damage_at(f"{self.query.url}/{path}", reason)

    def _snapshot(self, data: bytes) -> str:
        """A snapshot lists the tables that it is made of."""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                _, _, body = archive.read("metadata").decode().partition("\n")
        except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
            return f"it is not a snapshot: {error}"
        tables = {*self.query.names(f"{self.folder}/SSTs")}
        missing = [file["dfsSstFileName"] for file in json.loads(body).get("sstFiles", []) if file["dfsSstFileName"] not in tables]
        return f"its table `SSTs/{missing[0]}` is missing" if missing else ""
