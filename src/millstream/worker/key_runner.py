"""Runs a process function on a bucket, key by key: due timers, then the key's rows, then timers that these set and that are already due.

Rows are split by key, and each key's state is found, on whole columns; only the user's function is called per key. When the call for a key
fails and rejects are isolated, its rows become rejects and its state does not change. Values are converted to Arrow for the whole bucket at
once; if that fails, the bucket runs again with each key converted separately, to find the failing one. This module is pickled to the
workers (`pickling.py`), so it imports only modules of Millstream that are pickled too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.worker import marks
from millstream.worker.batches import WrongResultError, WrongValueError
from millstream.worker.buckets import codes, sort_by
from millstream.worker.output_batches import Emitted, OutputShape, column
from millstream.worker.processing import Moment, TimerError, Timers, as_datetime
from millstream.worker.state_cells import KeyState
from millstream.worker.state_layout import CLOCK, CLOCK_NEXT, EVENT, EVENT_NEXT, StateLayout, due, earliest

_ROUNDS = 10_000


@dataclass(frozen=True)
class Visit:
    """The result of a bucket; times in microseconds."""

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
    layout: StateLayout
    shape: OutputShape
    order: tuple[str, ...]
    ticks: bool
    """Whether the function uses the clock."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.layout.keys.names)

    @property
    def kinds(self) -> dict[str, Any]:
        return dict(self.layout.kinds)

    def visit(self, rows: pa.Table | None, stored: pa.Table | None, moment: Moment) -> Visit:
        table = self.layout.open_table(stored)
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
                    error.add_note(marks.write(marks.AT_KEY, _format_key(turn.key)))
                    raise
                rejects += self._reject(turn, error)
                row = self._previous_state(turn, stored, moment)
            if row is not None:
                written.append(row)
        state = self.layout.replace_rows(table, [turn.place for turn in turns], written, moment.now_us // 1000)
        return Visit(self.shape.batches(emitted) + rejects, state, earliest(state, EVENT_NEXT), earliest(state, CLOCK_NEXT))

    def _turn(self, turn: Turn, stored: dict[str, Any], moment: Moment, careful: bool) -> tuple[list[Emitted], tuple[Any, ...] | None]:
        state = KeyState(self.layout.kinds, stored, moment.now_us // 1000)
        timers = Timers(moment, set(stored[EVENT] or ()), set(stored[CLOCK] or ()), self.ticks)
        key = turn.key[0] if len(turn.key) == 1 else turn.key
        emitted = self._fire(key, state, timers)
        if turn.rows is not None:
            emitted += self.shape.collect(self.function.process(key, turn.rows, state, timers))
            emitted += self._fire(key, state, timers)
        row = self.layout.row(turn.key, state, timers.event, timers.clock)
        if careful:
            self.shape.batches(emitted)
            for value, field in zip(row or (), self.layout.schema, strict=False):
                column([value], field)
        return emitted, row

    def _fire(self, key: Any, state: KeyState, timers: Timers) -> list[Emitted]:
        """Fire due timers in the order of their times, including those that they set."""
        emitted: list[Emitted] = []
        for _ in range(_ROUNDS):
            event, clock = min(timers.event, default=None), min(timers.clock, default=None)
            if event is not None and event <= (timers.moment.watermark_us or 0):
                timers.event.discard(event)
                emitted += self.shape.collect(self.function.on_timer(key, as_datetime(event), state, timers))
            elif clock is not None and clock <= timers.moment.now_us:
                timers.clock.discard(clock)
                emitted += self.shape.collect(self.function.on_clock(key, as_datetime(clock), state, timers))
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
        ordered, groups = sort_by(rows, of_rows, self.order)
        found, starts = np.unique(groups, return_index=True)
        alone = places[~np.isin(of_state[places], found)]
        yield from (Turn(key, int(place), None) for key, place in zip(_tuples(keys, alone), alone, strict=True))
        (batch,) = ordered.to_batches()
        ends = np.append(starts[1:], len(groups))
        for key, code, start, end in zip(_tuples(ordered.select(names), starts), found, starts, ends, strict=True):
            yield Turn(key, int(place_of[code]), batch.slice(start, end - start))

    def _reject(self, turn: Turn, error: Exception) -> list[pa.RecordBatch]:
        rows = turn.rows.to_pylist() if turn.rows is not None else [dict(zip(self.layout.keys.names, turn.key, strict=True))]
        return self.shape.rejects(rows, f"{type(error).__name__}: {error}")

    def _previous_state(self, turn: Turn, stored: dict[str, Any], moment: Moment) -> tuple[Any, ...] | None:
        """The previous state, without the timers that were due."""
        state = KeyState(self.layout.kinds, stored, moment.now_us // 1000)
        event = {time for time in stored[EVENT] or () if time > (moment.watermark_us or 0)}
        return self.layout.row(turn.key, state, event, {time for time in stored[CLOCK] or () if time > moment.now_us})


def _tuples(table: pa.Table, places: np.ndarray[Any, Any]) -> Iterator[tuple[Any, ...]]:
    taken = table.take(pa.array(places, pa.int64()))
    return zip(*(column.to_pylist() for column in taken.columns), strict=True)


def _format_key(key: tuple[Any, ...]) -> str:
    return ", ".join(repr(value) for value in key)[:200]
