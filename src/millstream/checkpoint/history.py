"""The history of a pipeline's runs: its events, in two rings of files in the checkpoint.

<checkpoint>/_millstream/history/events/<number>.jsonl      what happened
<checkpoint>/_millstream/history/measures/<number>.jsonl    totals every few seconds, for charts

A ring has files of limited size, and the oldest file goes when there are too many. The newest file is written anew from memory at every
flush, so that any file system will do. It is not synced: a crash loses the last seconds of the history, and nothing else. Two rings, as a
fast pipeline would otherwise push the last hour out by its epochs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.clients.storage import LocalStorage, Storage
from millstream.observe.events import PRIVATE, Event, Measured, as_dict, from_dict
from millstream.secrets import redacted

FOLDER = f"{OWN}/history"
_FILE_BYTES = 256 << 10
_FILES = 16


@dataclass
class _Ring:
    """One ring. The run that has the lease is its only writer."""

    storage: Storage
    _lines: list[bytes] = field(default_factory=list)
    """The newest file."""
    _bytes: int = 0
    _number: int = -1
    _changed: bool = False

    def add(self, line: bytes) -> None:
        if self._number < 0:
            self._continue()
        if self._bytes >= _FILE_BYTES:
            self.flush()
            self._number, self._bytes, self._lines = self._number + 1, 0, []
            for old in sorted(self._numbers())[: 1 - _FILES]:
                self.storage.delete(_name(old))
        self._lines.append(line)
        self._bytes += len(line)
        self._changed = True

    def _continue(self) -> None:
        """Go on with the newest file of earlier runs."""
        self._number = max(self._numbers(), default=0)
        self._lines = [self.storage.read(_name(self._number)) or b""]
        self._bytes = len(self._lines[0])
        if self._lines[0] and not self._lines[0].endswith(b"\n"):
            self._lines.append(b"\n")

    def flush(self) -> None:
        if self._changed:
            self.storage.put(_name(self._number), b"".join(self._lines))
            self._changed = False

    def read(self) -> Iterator[Event]:
        for number in sorted(self._numbers()):
            for line in (self.storage.read(_name(number)) or b"").splitlines():
                try:
                    found = from_dict(json.loads(line))
                except ValueError:  # the machine lost power while it was written
                    continue
                if found is not None:
                    yield found

    def _numbers(self) -> list[int]:
        return [int(name.removesuffix(".jsonl")) for name in self.storage.names() if name.removesuffix(".jsonl").isdigit()]


def _name(number: int) -> str:
    return f"{number:08d}.jsonl"


class History:
    """Both rings of a checkpoint. `redact` hides secrets in what is written."""

    def __init__(self, checkpoint: Checkpoint, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        storage = checkpoint.storage
        if isinstance(storage, LocalStorage):
            storage = LocalStorage(storage.root, durable=False)
        self._events, self._measures = (_Ring(storage.child(f"{FOLDER}/{name}")) for name in ("events", "measures"))

    def add(self, found: Iterable[Event]) -> None:
        """Add events. Rows of users are never kept."""
        for event in found:
            if not isinstance(event, PRIVATE):
                ring = self._measures if isinstance(event, Measured) else self._events
                ring.add(json.dumps(redacted(as_dict(event), self._redact), default=str).encode() + b"\n")

    def flush(self) -> None:
        self._events.flush()
        self._measures.flush()

    def events(self) -> Iterator[Event]:
        """What is kept of this and earlier runs, oldest first."""
        return self._events.read()

    def measures(self) -> Iterator[Event]:
        return self._measures.read()
