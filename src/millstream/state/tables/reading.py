"""Looking rows up by whole batches of keys: distinct keys only, one question to the store per batch, and a cache if one is wanted.

The cache belongs to a Python process: Spark keeps its workers and hands them one task after the other, so what one task learnt serves
the next. That is why readers are kept in this module (`reader_of`), under the identity of their table. An entry is used for `ttl`
seconds, also one that says that a key has no row; when there are more than `max_rows`, those that were not used for longest go.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.state.tables.spec import CacheSpec, Store, TableSpec, open_store
from millstream.state.tables.values import fitted

_READERS: dict[tuple[str, int], Reader] = {}
_CACHES: dict[str, Cache] = {}


@dataclass(frozen=True, slots=True)
class Found:
    """For every key the number of its row, null where there is none; and the rows."""

    positions: pa.Array
    rows: pa.Table


class Reader:
    """A store, asked by batches. `questions` counts how often."""

    def __init__(self, spec: TableSpec, schema: pa.Schema, store: Store, cache: Cache | None = None) -> None:
        self._spec, self._schema, self._store = spec, schema, store
        self._cache = cache or (Cache(spec.cache) if spec.cache else None)
        self.questions = 0

    def find(self, *keys: pa.Array) -> Found:
        """One result per key; several arrays are the parts of one key."""
        kinds = [self._schema.field(name).type for name in self._spec.keys]
        parts = [fitted(part, kind, self._spec.name) for part, kind in zip(keys, kinds, strict=True)]
        distinct, numbers = _distinct(parts)
        wanted = pa.table(distinct, names=list(self._spec.keys))
        rows = self._ask(wanted) if self._cache is None else self._remembered(wanted, self._cache)
        return Found(pc.take(_places(wanted, rows.select(list(self._spec.keys))), numbers), rows)

    def _ask(self, keys: pa.Table) -> pa.Table:
        if not keys.num_rows:
            return self._schema.empty_table()
        self.questions += 1
        return self._store.get(keys)

    def _remembered(self, keys: pa.Table, cache: Cache) -> pa.Table:
        self._refresh(cache)
        names = _tuples(keys)
        known, unknown = cache.sorted(names)
        if unknown:
            rows = self._ask(keys.take(pa.array(unknown, pa.int64())))
            fresh = dict(zip(_tuples(rows.select(keys.column_names)), _tuples(rows), strict=True))
            learnt = {names[index]: fresh.get(names[index]) for index in unknown}
            cache.learn(learnt)
            known += [row for row in learnt.values() if row is not None]
        columns: Any = zip(*known, strict=True) if known else [[] for _ in self._schema]
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.table(arrays, schema=self._schema)

    def _refresh(self, cache: Cache) -> None:
        """Rows that have changed since the last look, of those that are remembered. Removals show when entries grow old."""
        if not cache.due():
            return
        self.questions += 1
        rows, cache.seen = self._store.changed(cache.seen)
        changed = dict(zip(_tuples(rows.select(list(self._spec.keys))), _tuples(rows), strict=True))
        cache.learn({name: row for name, row in changed.items() if name in cache.entries})


class Cache:
    """Entries with an age: key → (row or None, when it was learnt). Threads that look up side by side share one."""

    def __init__(self, spec: CacheSpec) -> None:
        self._spec, self._looked, self._lock = spec, float("-inf"), threading.Lock()
        self.seen: Any = None
        """Where the last look for changes ended."""
        self.entries: OrderedDict[Any, tuple[Any, float]] = OrderedDict()

    def sorted(self, names: list[Any]) -> tuple[list[Any], list[int]]:
        """The rows that are known, and the numbers of the keys that are to be asked for."""
        known, unknown, oldest = [], [], time.monotonic() - self._spec.ttl
        with self._lock:
            for index, name in enumerate(names):
                entry = self.entries.get(name)
                if entry is None or entry[1] < oldest:
                    unknown.append(index)
                    continue
                self.entries.move_to_end(name)
                if entry[0] is not None:
                    known.append(entry[0])
        return known, unknown

    def learn(self, rows: Mapping[Any, Any]) -> None:
        now = time.monotonic()
        with self._lock:
            for name, row in rows.items():
                self.entries.pop(name, None)
                if row is not None or self._spec.negative:
                    self.entries[name] = (row, now)
            while len(self.entries) > self._spec.max_rows:
                self.entries.popitem(last=False)

    def due(self) -> bool:
        """Whether it is time to look for changes."""
        with self._lock:
            if self._spec.refresh is None or time.monotonic() - self._looked < self._spec.refresh:
                return False
            self._looked = time.monotonic()
            return True


def reader_of(spec: TableSpec, schema: pa.Schema, lane: int = 0) -> Reader:
    """The reader of this process. `lane` tells threads apart that read at the same time."""
    name = (spec.identity, lane)
    if name not in _READERS:
        cache = _CACHES.setdefault(name[0], Cache(spec.cache)) if spec.cache else None
        _READERS[name] = Reader(spec, schema, open_store(spec, schema), cache)
    return _READERS[name]


def _distinct(parts: list[pa.Array]) -> tuple[list[pa.Array], pa.Array]:
    """Every key once, and for each of the given ones its number; null for keys with a null in them."""
    if len(parts) == 1:
        encoded = parts[0].dictionary_encode()
        return [encoded.dictionary], encoded.indices
    seen: dict[Any, int] = {}
    rows = zip(*(part.to_pylist() for part in parts), strict=True)
    numbers = [None if None in row else seen.setdefault(row, len(seen)) for row in rows]
    columns: Any = zip(*seen, strict=True) if seen else [[] for _ in parts]
    return [pa.array(list(column), part.type) for column, part in zip(columns, parts, strict=True)], pa.array(numbers, pa.int32())


def _places(wanted: pa.Table, found: pa.Table) -> pa.Array:
    """For every key the number of its row. Where several rows have the key it is the first."""
    if wanted.num_columns == 1:
        return pc.index_in(wanted.column(0).combine_chunks(), found.column(0).combine_chunks())
    rows: dict[Any, int] = {}
    for number, row in enumerate(_tuples(found)):
        rows.setdefault(row, number)
    return pa.array([rows.get(row) for row in _tuples(wanted)], pa.int32())


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
