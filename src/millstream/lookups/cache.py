"""A worker's cache of a table: rows as one Arrow table, and for every key the position of its row.

A batch needs no Python object per row: one dictionary lookup per distinct key gives the index of its entry; ages, uses and positions of all
entries are arrays. Rows are only appended; expired and removed rows are swept out from time to time. Threads that look up in parallel share
one cache: each gets consistent positions and rows.
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

from millstream.lookups.table import CacheSpec

Numbers = npt.NDArray[np.int64]
ABSENT, UNKNOWN = -1, -2
"""Instead of a row number: the key has no row; the key is unknown."""
_ROOM = 1024


@dataclass(frozen=True, slots=True)
class CachedKeys:
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
        """Where the last poll for changes ended."""

    def look(self, keys: Sequence[Any]) -> CachedKeys:
        with self._lock:
            self._tick += 1
            numbers = np.fromiter((self._entries.get(key, UNKNOWN) for key in keys), np.int64, len(keys))
            known = numbers[numbers >= 0]
            fresh = self._learnt[known] >= time.monotonic() - self._spec.ttl
            places = np.full(len(keys), UNKNOWN, np.int64)
            places[numbers >= 0] = np.where(fresh, self._places[known], UNKNOWN)
            self._used[known] = self._tick
            return CachedKeys(places, self._rows)

    def learn(self, keys: Sequence[Any], places: Numbers, rows: pa.Table) -> None:
        """Store keys that were looked up, and the positions of their rows in `rows`, or `ABSENT`."""
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

    def cached(self, keys: Sequence[Any]) -> list[int]:
        """The indexes of the keys that are in the cache."""
        with self._lock:
            return [number for number, key in enumerate(keys) if key in self._entries]

    def due(self) -> bool:
        """Whether it is time to poll for changes."""
        with self._lock:
            if self._spec.refresh is None or time.monotonic() - self._looked < self._spec.refresh:
                return False
            self._looked = time.monotonic()
            return True

    def _write(self, keys: list[Any], places: Numbers) -> None:
        numbers = np.fromiter((self._entries.setdefault(key, len(self._entries)) for key in keys), np.int64, len(keys))
        if len(self._entries) > len(self._places):
            room = 2 * len(self._entries) + _ROOM
            self._places, self._used = _grow(self._places, room), _grow(self._used, room)
            self._learnt = _grow(self._learnt, room)
        self._places[numbers], self._learnt[numbers], self._used[numbers] = places, time.monotonic(), self._tick

    def _sweep(self) -> None:
        """Keep the most recently used entries; a large cache is reduced further, so that this happens rarely."""
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


def _grow(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros(room - len(array), array.dtype)])
