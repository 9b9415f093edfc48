"""Looks up rows by whole batches of keys: distinct keys only, one query to the store per batch, and an optional cache.

The cache belongs to a Python process: Spark reuses its workers for many tasks, so later tasks use what earlier ones cached. Therefore
readers are kept in this module (`reader_of`), under the identity of their table. An entry is used for `ttl` seconds, including one for a
key without a row; beyond `max_rows` the least recently used entries are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.lookups.cache import ABSENT, UNKNOWN, Cache
from millstream.lookups.table import TableSpec, TableStore, open_store
from millstream.lookups.values import fit_keys

_READERS: dict[tuple[str, int], Reader] = {}
_CACHES: dict[str, Cache] = {}


@dataclass(frozen=True, slots=True)
class Found:
    """For every key the number of its row, null where there is none; and the rows."""

    positions: pa.Array
    rows: pa.Table


class Reader:
    """A store, queried by batches. `questions` counts the queries."""

    def __init__(self, spec: TableSpec, schema: pa.Schema, store: TableStore, cache: Cache | None = None) -> None:
        self._spec, self._schema, self._store = spec, schema, store
        self._cache = cache or (Cache(spec.cache, schema) if spec.cache else None)
        self.questions = 0

    def find(self, *keys: pa.Array) -> Found:
        """One result per key; several arrays are the parts of one key."""
        kinds = [self._schema.field(name).type for name in self._spec.keys]
        parts = [fit_keys(part, kind, self._spec.name) for part, kind in zip(keys, kinds, strict=True)]
        distinct, numbers = _distinct(parts)
        wanted = pa.table(distinct, names=list(self._spec.keys))
        if self._cache is not None:
            places, rows = self._find_cached(wanted, self._cache)
        else:
            rows = self._ask(wanted)
            places = _places(wanted, rows.select(list(self._spec.keys)))
        return Found(pc.take(places, numbers), rows)

    def _ask(self, keys: pa.Table) -> pa.Table:
        if not keys.num_rows:
            return self._schema.empty_table()
        self.questions += 1
        return self._store.get(keys)

    def _find_cached(self, keys: pa.Table, cache: Cache) -> tuple[pa.Array, pa.Table]:
        names = _names(keys)
        self._refresh(cache)
        known = cache.look(names)
        rows, places = known.rows, known.places
        unknown = np.flatnonzero(places == UNKNOWN)
        if len(unknown):
            asked = keys.take(pa.array(unknown))
            fresh = self._ask(asked)
            found = _places(asked, fresh.select(keys.column_names)).fill_null(ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
            cache.learn([names[index] for index in unknown], found, fresh)
            places[unknown] = np.where(found >= 0, found + rows.num_rows, ABSENT)
            rows = pa.concat_tables([rows, fresh]).combine_chunks()
        return pa.array(places, mask=places < 0), rows

    def _refresh(self, cache: Cache) -> None:
        """Read the rows that changed since the last poll and are cached. Removals are seen when entries expire."""
        if not cache.due():
            return
        self.questions += 1
        rows, cache.seen = self._store.changes_since(cache.seen)
        names = _names(rows.select(list(self._spec.keys)))
        held = cache.cached(names)
        cache.learn([names[number] for number in held], np.arange(len(held)), rows.take(pa.array(held, pa.int64())))


def reader_of(spec: TableSpec, schema: pa.Schema, lane: int = 0) -> Reader:
    """The reader of this process. `lane` distinguishes threads that read at the same time."""
    name = (spec.cache_key, lane)
    if name not in _READERS:
        cache = _CACHES.setdefault(name[0], Cache(spec.cache, schema)) if spec.cache else None
        _READERS[name] = Reader(spec, schema, open_store(spec, schema), cache)
    return _READERS[name]


def _distinct(parts: list[pa.Array]) -> tuple[list[pa.Array], pa.Array]:
    """The distinct keys, and for each given key its index; null for keys that contain a null."""
    if len(parts) == 1:
        encoded = parts[0].dictionary_encode()
        return [encoded.dictionary], encoded.indices
    seen: dict[Any, int] = {}
    rows = zip(*(part.to_pylist() for part in parts), strict=True)
    numbers = [None if None in row else seen.setdefault(row, len(seen)) for row in rows]
    columns: Any = zip(*seen, strict=True) if seen else [[] for _ in parts]
    return [pa.array(list(column), part.type) for column, part in zip(columns, parts, strict=True)], pa.array(numbers, pa.int32())


def _places(wanted: pa.Table, found: pa.Table) -> pa.Array:
    """For every key the number of its row; the first one if several rows have the key."""
    if wanted.num_columns == 1:
        return pc.index_in(wanted.column(0).combine_chunks(), found.column(0).combine_chunks())
    rows: dict[Any, int] = {}
    for number, row in enumerate(_tuples(found)):
        rows.setdefault(row, number)
    return pa.array([rows.get(row) for row in _tuples(wanted)], pa.int32())


def _names(keys: pa.Table) -> list[Any]:
    """Keys as the cache stores them: a value, or several as a tuple."""
    return keys.column(0).to_pylist() if keys.num_columns == 1 else _tuples(keys)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
