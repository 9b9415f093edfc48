"""A bucket of keys, key by key: due timers, then the key's rows, then the timers that these set and that are due already.

Splitting rows by key and finding each key's state is done on whole columns; the call of the user's function is the only work per key.
When a key's turn fails and bad rows are to be told apart, its rows leave as rejects and its state stays as it was. Values are converted
to Arrow for the whole bucket at once; if that fails, the bucket is done again with each key converted by itself, to find the one.

This module travels to the workers (`shipping.py`), so of Millstream it imports only what travels too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.plan.cells import KeyState
from millstream.plan.processing import Moment, TimerError, Timers, as_datetime
from millstream.transforms.batches import WrongResultError, WrongValueError
from millstream.transforms.buckets import codes, sorted_by
from millstream.transforms.emitting import Emitted, Shape, column
from millstream.transforms.remembering import CLOCK, CLOCK_NEXT, EVENT, EVENT_NEXT, Layout, due, earliest

_ROUNDS = 10_000


@dataclass(frozen=True)
class Visit:
    """What became of a bucket; times in microseconds."""

    batches: list[pa.RecordBatch]
    state: pa.Table
    event: int | None = None
    clock: int | None = None


@dataclass(frozen=True)
class Turn:
    """One key's part of an epoch. `place` is its row in the state table, -1 when it has none."""

    key: tuple[Any, ...]
    place: int
    rows: pa.RecordBatch | None


@dataclass(frozen=True)
class KeyedRunner:
    """Calls a `ProcessFunction`."""

    function: Any
    layout: Layout
    shape: Shape
    order: tuple[str, ...]
    ticks: bool
    """Whether the function has a use for the clock."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.layout.keys.names)

    @property
    def kinds(self) -> dict[str, Any]:
        return dict(self.layout.kinds)

    def visit(self, rows: pa.Table | None, stored: pa.Table | None, moment: Moment) -> Visit:
        table = self.layout.opened(stored)
        turns = list(self._turns(rows, table, moment))
        try:
            return self._visit(turns, table, moment, careful=False)
        except WrongValueError:
            return self._visit(turns, table, moment, careful=True)

    def _visit(self, turns: list[Turn], table: pa.Table, moment: Moment, careful: bool) -> Visit:
        records = self.layout.records(table, [turn.place for turn in turns])
        emitted: list[Emitted] = []
        rejects: list[pa.RecordBatch] = []
        written: list[tuple[Any, ...]] = []
        for index, turn in enumerate(turns):
            stored = {name: values[index] for name, values in records.items()}
            try:
                found, row = self._turn(turn, stored, moment, careful)
                emitted += found
            except Exception as error:
                if not self.shape.isolate or (isinstance(error, WrongResultError) and not isinstance(error, WrongValueError)):
                    error.add_note(f"millstream-at-key: {_shown(turn.key)}")
                    raise
                rejects += self._rejected(turn, error)
                row = self._untouched(turn, stored, moment)
            if row is not None:
                written.append(row)
        state = self.layout.replaced(table, [turn.place for turn in turns], written, moment.now_us // 1000)
        return Visit(self.shape.batches(emitted) + rejects, state, earliest(state, EVENT_NEXT), earliest(state, CLOCK_NEXT))

    def _turn(self, turn: Turn, stored: dict[str, Any], moment: Moment, careful: bool) -> tuple[list[Emitted], tuple[Any, ...] | None]:
        state = KeyState(self.layout.kinds, stored, moment.now_us // 1000)
        timers = Timers(moment, set(stored[EVENT] or ()), set(stored[CLOCK] or ()), self.ticks)
        key = turn.key[0] if len(turn.key) == 1 else turn.key
        emitted = self._fire(key, state, timers)
        if turn.rows is not None:
            emitted += self.shape.emitted(self.function.process(key, turn.rows, state, timers))
            emitted += self._fire(key, state, timers)
        row = self.layout.row(turn.key, state, timers.event, timers.clock)
        if careful:
            self.shape.batches(emitted)
            for value, field in zip(row or (), self.layout.schema, strict=False):
                column([value], field)
        return emitted, row

    def _fire(self, key: Any, state: KeyState, timers: Timers) -> list[Emitted]:
        """Due timers in the order of their times; those that they set in turn as well."""
        emitted: list[Emitted] = []
        for _ in range(_ROUNDS):
            event, clock = min(timers.event, default=None), min(timers.clock, default=None)
            if event is not None and event <= (timers.moment.watermark_us or 0):
                timers.event.discard(event)
                emitted += self.shape.emitted(self.function.on_timer(key, as_datetime(event), state, timers))
            elif clock is not None and clock <= timers.moment.now_us:
                timers.clock.discard(clock)
                emitted += self.shape.emitted(self.function.on_clock(key, as_datetime(clock), state, timers))
            else:
                return emitted
        raise TimerError("its timers set each other without end; set none when `timers.at_end` is true")

    def _turns(self, rows: pa.Table | None, table: pa.Table, moment: Moment) -> Iterator[Turn]:
        """Keys with due timers and no rows, then keys with rows."""
        places = np.union1d(due(table, EVENT_NEXT, moment.watermark_us), due(table, CLOCK_NEXT, moment.now_us))
        names = self.layout.keys.names
        if rows is None:
            yield from (Turn(key, int(place), None) for key, place in zip(_tuples(self.layout.keys_of(table), places), places, strict=True))
            return
        keys = self.layout.keys_of(table)
        of_state, of_rows = codes([keys, rows.select(names).cast(self.layout.keys)], names)
        place_of = np.full(max(of_state.max(initial=-1), of_rows.max(initial=-1)) + 1, -1, dtype=np.int64)
        place_of[of_state] = np.arange(len(of_state))
        ordered, groups = sorted_by(rows, of_rows, self.order)
        found, starts = np.unique(groups, return_index=True)
        alone = places[~np.isin(of_state[places], found)]
        yield from (Turn(key, int(place), None) for key, place in zip(_tuples(keys, alone), alone, strict=True))
        (batch,) = ordered.to_batches()
        ends = np.append(starts[1:], len(groups))
        for key, code, start, end in zip(_tuples(ordered.select(names), starts), found, starts, ends, strict=True):
            yield Turn(key, int(place_of[code]), batch.slice(start, end - start))

    def _rejected(self, turn: Turn, error: Exception) -> list[pa.RecordBatch]:
        rows = turn.rows.to_pylist() if turn.rows is not None else [dict(zip(self.layout.keys.names, turn.key, strict=True))]
        return self.shape.rejects(rows, f"{type(error).__name__}: {error}")

    def _untouched(self, turn: Turn, stored: dict[str, Any], moment: Moment) -> tuple[Any, ...] | None:
        """The state as it was, without the timers that were due."""
        state = KeyState(self.layout.kinds, stored, moment.now_us // 1000)
        event = {time for time in stored[EVENT] or () if time > (moment.watermark_us or 0)}
        return self.layout.row(turn.key, state, event, {time for time in stored[CLOCK] or () if time > moment.now_us})


def _tuples(table: pa.Table, places: np.ndarray[Any, Any]) -> Iterator[tuple[Any, ...]]:
    taken = table.take(pa.array(places, pa.int64()))
    return zip(*(column.to_pylist() for column in taken.columns), strict=True)


def _shown(key: tuple[Any, ...]) -> str:
    return ", ".join(repr(value) for value in key)[:200]
