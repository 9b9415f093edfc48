"""Deduplication on whole columns: keeps the first row of a key and drops others for a time.

The rows of a key are ordered by time, position in the source, and the other columns. The first is kept, rows up to `within` after it are
dropped, the next one is kept, and so on. A row is decided when the watermark has passed its time, because no earlier row can arrive then.
So the result depends neither on the order of arrival nor on epoch boundaries. The state holds undecided rows and, for each key, the time of
the last kept row while it matters. This module is pickled to the workers (`pickling.py`), so it imports only modules of Millstream that are
pickled too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.worker.buckets import codes
from millstream.worker.processing import BucketFunction, BucketResult, Moment, as_datetime

KEPT = "_kept"
"""True for state rows that hold the last kept row of their key."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Deduplication(BucketFunction):
    """Greedy, by event time. `within_us` None: one row per key, for ever."""

    time: str
    ties: tuple[str, ...]
    within_us: int | None

    def process(self, keys: tuple[str, ...], rows: pa.Table, state: pa.Table, moment: Moment) -> BucketResult:
        watermark = moment.watermark_us or 0
        late = np.asarray(_micros(rows[self.time])) < watermark
        fresh = rows.filter(pa.array(~late))
        fresh = fresh.append_column(pa.field(KEPT, pa.bool_()), pa.array(np.zeros(fresh.num_rows, bool))).cast(state.schema)
        table = pa.concat_tables([state, fresh]).combine_chunks()
        times = np.asarray(_micros(table[self.time]))
        ripe = (times < watermark) & ~np.asarray(table[KEPT])
        rest = BucketResult(self._trim(table.filter(pa.array(~ripe)), watermark), wake_at=self._wake(times, table, ripe))
        rejects = (rows.filter(pa.array(late)), "late: its time is before the watermark") if late.any() else None
        if not ripe.any():
            return BucketResult(rest.state, wake_at=rest.wake_at, rejects=rejects)
        kept, state = self._decide(keys, table, ripe, rest.state)
        return BucketResult(self._trim(state, watermark), kept.drop_columns([KEPT]), wake_at=rest.wake_at, rejects=rejects)

    def _decide(self, keys: tuple[str, ...], table: pa.Table, ripe: Array, rest: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The decided rows that are kept, and the state with the times of the last kept rows."""
        candidates = self._sort(keys, table.filter(pa.array(ripe | np.asarray(table[KEPT]))))
        (group,) = codes([candidates.select(keys)], keys)
        order = np.argsort(group, kind="stable")
        candidates, group = candidates.take(pa.array(order)), group[order]
        times, old = np.asarray(_micros(candidates[self.time])), np.asarray(candidates[KEPT])
        chosen = _greedy(group, times, self.within_us)
        kept = candidates.filter(pa.array(chosen & ~old))
        last = np.zeros(len(group), bool)
        picked = np.flatnonzero(chosen)
        last[picked[np.append(group[picked][1:] != group[picked][:-1], True)]] = True
        marks = self._marks(keys, candidates.filter(pa.array(last)))
        waiting = rest.filter(pc.invert(rest[KEPT]))
        return kept, pa.concat_tables([waiting, marks]).combine_chunks()

    def _sort(self, keys: tuple[str, ...], table: pa.Table) -> pa.Table:
        """Sort by time, then by the other columns; the kept row of a key comes before rows with the same time."""
        by = [self.time, "_first", *self.ties]
        table = table.append_column("_first", pc.invert(table[KEPT]))
        for field in table.schema:
            if pa.types.is_nested(field.type):
                texts = [json.dumps(value, sort_keys=True, default=str) for value in table[field.name].to_pylist()]
                table = table.append_column(f"_text_{field.name}", pa.array(texts, pa.string()))
                by = [f"_text_{name}" if name == field.name else name for name in by]
        order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in by])
        return table.take(order).select([name for name in table.column_names if name != "_first" and not name.startswith("_text_")])

    def _marks(self, keys: tuple[str, ...], rows: pa.Table) -> pa.Table:
        """Rows with key and time only."""
        needed = {*keys, self.time}
        columns = [rows[field.name] if field.name in needed else pa.nulls(rows.num_rows, field.type) for field in rows.schema]
        columns[rows.schema.names.index(KEPT)] = pa.array(np.ones(rows.num_rows, bool))
        return pa.table(columns, schema=rows.schema)

    def _trim(self, state: pa.Table, watermark: int) -> pa.Table:
        """The state without times that no later row can depend on."""
        if self.within_us is None:
            return state
        over = np.asarray(state[KEPT]) & (np.asarray(_micros(state[self.time])) + self.within_us <= watermark)
        return state.filter(pa.array(~over))

    def _wake(self, times: Array, table: pa.Table, ripe: Array) -> Any:
        waiting = times[~ripe & ~np.asarray(table[KEPT])]
        return as_datetime(int(waiting.min()) // 1000 * 1000 + 1000) if len(waiting) else None


def _greedy(group: Array, times: Array, within: int | None) -> Array:
    """Which rows are kept; the rows are sorted by group and time. Each round keeps one more row of every group that has one."""
    chosen = np.zeros(len(group), bool)
    at = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else np.empty(0, np.int64)
    if within is None:
        chosen[at] = True
        return chosen
    following = _next_after(group, times, within)
    while len(at):
        chosen[at] = True
        at = following[at]
        at = at[at >= 0]
    return chosen


def _next_after(group: Array, times: Array, within: int) -> Array:
    """For each row the first one of its group that is `within` or more later; -1 when there is none."""
    count = len(group)
    groups, both = np.concatenate([group, group]), np.concatenate([times, times + within])
    is_question = np.repeat([True, False], count)[::-1].copy()
    order = np.lexsort((~is_question, both, groups))  # a lookup row comes before the rows of its time
    rows_before = np.cumsum(~is_question[order])
    places = np.empty(2 * count, np.int64)
    places[order] = rows_before
    found = places[count:]
    inside = found < count
    result = np.full(count, -1, np.int64)
    same = np.zeros(count, bool)
    same[inside] = group[found[inside]] == group[inside]
    result[same] = found[same]
    return result


def _micros(column: Any) -> Any:
    """Times as microseconds."""
    zone = column.type.tz
    return pc.cast(pc.cast(column, pa.timestamp("us", zone)), pa.int64()).to_numpy()
