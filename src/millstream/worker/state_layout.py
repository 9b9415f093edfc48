"""The state of a bucket as one Arrow table with a row per key: key columns, a column per declared state, timers, expiry.

Only the rows of keys that an epoch touches become Python objects; the others are copied. Extra columns: the timers as lists, the earliest
of each so that due ones are found without unpacking the lists, and the time when the row expires. This module is pickled to the workers
(`pickling.py`), so it imports only modules of Millstream that are pickled too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.worker.output_batches import column
from millstream.worker.state_cells import KeyState

EVENT, CLOCK, EVENT_NEXT, CLOCK_NEXT, EXPIRES = "_event", "_clock", "_event_next", "_clock_next", "_expires"
KEY = "key."
"""Prefix of key columns: a state may have the same name."""
_OWN = pa.schema(
    [
        (EVENT, pa.list_(pa.int64())),
        (CLOCK, pa.list_(pa.int64())),
        (EVENT_NEXT, pa.int64()),
        (CLOCK_NEXT, pa.int64()),
        (EXPIRES, pa.int64()),
    ]
)


class StateLayoutError(TypeError):
    """The stored state does not match the class's declaration."""


@dataclass(frozen=True)
class StateLayout:
    """Columns of the state table. `kinds`: state → (value, list or map; its time to live in milliseconds)."""

    keys: pa.Schema
    states: pa.Schema
    kinds: Mapping[str, tuple[str, int | None]]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*(pa.field(f"{KEY}{field.name}", field.type) for field in self.keys), *self.states, *_OWN])

    def keys_of(self, table: pa.Table) -> pa.Table:
        """The keys in a state table, under their names in the rows."""
        return table.select(range(len(self.keys))).rename_columns(self.keys.names)

    def open_table(self, stored: pa.Table | None) -> pa.Table:
        """The stored table in this layout; new states are empty."""
        if stored is None:
            return self.schema.empty_table()
        return stored if stored.schema.equals(self.schema) else self._migrate(stored)

    def _migrate(self, stored: pa.Table) -> pa.Table:
        for field in stored.schema:
            if field.name not in self.schema.names:
                raise StateLayoutError(f"the checkpoint holds a state `{field.name}`, which is no longer declared")
            if not field.type.equals(self.schema.field(field.name).type):
                raise StateLayoutError(
                    f"state `{field.name}` is stored as {field.type} and declared as {self.schema.field(field.name).type}"
                )
        held = set(stored.schema.names)
        columns = [stored[f.name] if f.name in held else pa.nulls(stored.num_rows, f.type) for f in self.schema]
        return pa.table(columns, schema=self.schema)

    def records(self, table: pa.Table, places: Sequence[int]) -> dict[str, list[Any]]:
        """The columns of some rows as Python values; -1 is a key without a row."""
        taken = table.take(pa.array([place if place >= 0 else None for place in places], pa.int64()))
        return {name: taken[name].to_pylist() for name in (*self.states.names, EVENT, CLOCK)}

    def replace_rows(self, table: pa.Table, touched: Sequence[int], written: list[tuple[Any, ...]], now_ms: int) -> pa.Table:
        """The table with new rows in place of the touched ones, and without expired rows."""
        keep = np.ones(table.num_rows, dtype=bool)
        keep[[place for place in touched if place >= 0]] = False
        expires = table[EXPIRES]
        alive = pc.fill_null(pc.greater(expires, now_ms), True)
        rest = table.filter(pc.and_(pa.array(keep), alive))
        columns = zip(*written, strict=True) if written else [[] for _ in self.schema]
        fresh = pa.table([column(list(values), field) for values, field in zip(columns, self.schema, strict=True)], schema=self.schema)
        return pa.concat_tables([rest, fresh]).combine_chunks()

    def row(self, key: tuple[Any, ...], state: KeyState, event: set[int], clock: set[int]) -> tuple[Any, ...] | None:
        """The row to store for a key; None when there is nothing to store."""
        stored = [cell.dump() for cell in state.values()]
        if not event and not clock and all(value is None for value in stored):
            return None
        own = (sorted(event) or None, sorted(clock) or None, min(event, default=None), min(clock, default=None))
        return (*key, *stored, *own, None if event or clock else self._expires(state))

    def _expires(self, state: KeyState) -> int | None:
        times = []
        for name, (_, ttl) in self.kinds.items():
            if ttl is None and state[name].dump() is not None:
                return None
            if ttl is not None:
                times += [at + ttl for at in state[name].times()]
        return max(times, default=None)


def earliest(table: pa.Table, name: str) -> int | None:
    value: int | None = pc.min(table[name]).as_py()
    return value


def due(table: pa.Table, name: str, time: int | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows with a timer at that time or before."""
    if time is None or not table.num_rows:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.asarray(pc.fill_null(pc.less_equal(table[name], time), False)))
