"""What a worker remembers of a table: rows as one Arrow table, and for every key where its row is in it.

A batch is answered without making a row in Python: one look into a dictionary per distinct key gives the number of its entry, and ages,
uses and places of all entries are arrays. Rows are only added at the end; what is outdated or has gone is swept out from time to time.
Threads that look up side by side share one cache: each gets places and rows that belong together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.state.tables.spec import CacheSpec

Numbers = npt.NDArray[np.int64]
ABSENT, UNKNOWN = -1, -2
"""Instead of a row's number: the key has no row; nothing is known of the key."""
_ROOM = 1024


@dataclass(frozen=True, slots=True)
class Remembered:
    """For every key the number of its row, or `ABSENT` or `UNKNOWN`."""

    places: Numbers
    rows: pa.Table


class Cache:
    """Entries with an age and a last use."""

    def __init__(self, spec: CacheSpec, schema: pa.Schema) -> None:
        self._spec, self._rows, self._lock = spec, schema.empty_table(), threading.Lock()
        self._entries: dict[Any, int] = {}
        self._places, self._learnt, self._used = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
        self._tick, self._looked = 0, float("-inf")
        self.seen: Any = None
        """Where the last look for changes ended."""

    def look(self, keys: Sequence[Any]) -> Remembered:
        with self._lock:
            self._tick += 1
            numbers = np.fromiter((self._entries.get(key, UNKNOWN) for key in keys), np.int64, len(keys))
            known = numbers[numbers >= 0]
            fresh = self._learnt[known] >= time.monotonic() - self._spec.ttl
            places = np.full(len(keys), UNKNOWN, np.int64)
            places[numbers >= 0] = np.where(fresh, self._places[known], UNKNOWN)
            self._used[known] = self._tick
            return Remembered(places, self._rows)

    def learn(self, keys: Sequence[Any], places: Numbers, rows: pa.Table) -> None:
        """Keys that were asked for, and where their rows are among `rows`, or `ABSENT`."""
        with self._lock:
            here = np.where(places >= 0, places + self._rows.num_rows, ABSENT)
            self._rows = pa.concat_tables([self._rows, rows]).combine_chunks() if rows.num_rows else self._rows
            kept = list(range(len(keys))) if self._spec.negative else np.flatnonzero(here >= 0).tolist()
            self._write([keys[index] for index in kept], here[kept])
            for index in () if self._spec.negative else np.flatnonzero(here < 0).tolist():
                if keys[index] in self._entries:
                    self._learnt[self._entries[keys[index]]] = -np.inf
            if len(self._entries) > self._spec.max_rows or self._rows.num_rows > 2 * len(self._entries) + _ROOM:
                self._sweep()

    def held(self, keys: Sequence[Any]) -> list[int]:
        """The numbers of those keys that something is remembered of."""
        with self._lock:
            return [number for number, key in enumerate(keys) if key in self._entries]

    def due(self) -> bool:
        """Whether it is time to look for changes."""
        with self._lock:
            if self._spec.refresh is None or time.monotonic() - self._looked < self._spec.refresh:
                return False
            self._looked = time.monotonic()
            return True

    def _write(self, keys: list[Any], places: Numbers) -> None:
        numbers = np.fromiter((self._entries.setdefault(key, len(self._entries)) for key in keys), np.int64, len(keys))
        if len(self._entries) > len(self._places):
            room = 2 * len(self._entries) + _ROOM
            self._places, self._used = _grown(self._places, room), _grown(self._used, room)
            self._learnt = _grown(self._learnt, room)
        self._places[numbers], self._learnt[numbers], self._used[numbers] = places, time.monotonic(), self._tick

    def _sweep(self) -> None:
        """Leave what was used last; a large cache gets some room at once, so that this is done now and then."""
        most = self._spec.max_rows
        wanted = len(self._entries) if len(self._entries) <= most else most if most < 10 * _ROOM else most * 9 // 10
        keys, numbers = list(self._entries), np.fromiter(self._entries.values(), np.int64, len(self._entries))
        latest = np.sort(np.argsort(-self._used[numbers], kind="stable")[:wanted])
        kept = numbers[latest]
        places, learnt, used = self._places[kept], self._learnt[kept], self._used[kept]
        there = places >= 0
        self._rows = self._rows.take(pa.array(places[there])).combine_chunks()
        places[there] = np.arange(int(there.sum()))
        self._entries = {keys[index]: number for number, index in enumerate(latest)}
        self._places, self._learnt, self._used = places, learnt, used


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros(room - len(array), array.dtype)])
