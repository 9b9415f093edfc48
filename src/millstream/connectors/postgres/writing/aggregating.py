"""Aggregates kept in a table, by merges and no triggers.

The landing table holds the current row of each key. What an epoch changes is a set of rows with weights: the new row of a key counts +1,
the one that it replaces or deletes -1. Sums and counts of a group move by the weighted sum of that; a minimum or maximum that loses
the row it came from is looked up anew among the group's rows. So updates and deletes are as right as inserts.

Without a key every row counts by itself (`d` takes its own values away), and the landing table is a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from millstream.clients.postgres import quoted
from millstream.connectors.postgres.writing.columns import Column, cast
from millstream.connectors.postgres.writing.target import Target, listed

Function = Literal["sum", "count", "avg", "min", "max"]
ROWS = "_rows"
"""How many rows a group has; a group without rows goes."""
_CHANGES, _DELTA = "_millstream_changes", "_millstream_delta"


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the aggregate."""

    name: str
    function: Function
    source: str
    """The column that is added up; empty: the rows themselves."""
    kind: str
    """Its type."""

    @property
    def stored(self) -> dict[str, str]:
        """Column → type in the table."""
        helpers = {f"{self.name}_sum": "numeric", f"{self.name}_count": "bigint"} if self.function == "avg" else {}
        return {self.name: self.kind, **helpers}

    @property
    def extreme(self) -> bool:
        return self.function in {"min", "max"}


@dataclass(frozen=True)
class Aggregation:
    """How one epoch's rows change the landing table and the aggregate."""

    landing: Target
    columns: tuple[Column, ...]
    table: str
    """The aggregate's table, quoted."""
    groups: Mapping[str, str]
    """Column of the aggregate → column of the rows"""
    measures: tuple[Measure, ...]
    op: str

    def statements(self, tables: Sequence[str]) -> Iterator[str]:
        rows = " UNION ALL ".join(f"SELECT * FROM {table}" for table in tables)
        yield f"DROP TABLE IF EXISTS pg_temp.{_CHANGES}, pg_temp.{_DELTA}"
        yield f"CREATE TEMPORARY TABLE {_CHANGES} ON COMMIT DROP AS {self._changes(rows)}"
        yield f"CREATE TEMPORARY TABLE {_DELTA} ON COMMIT DROP AS {self._delta()}"
        yield from self._land(rows)
        yield self._merge()
        for measure in self.measures:
            if measure.extreme and self.landing.wanted.key:
                yield self._look_up_again(measure)
        if self.groups:
            yield f"DELETE FROM {self.table} AS t USING {_DELTA} AS d WHERE {self._same('t', 'd')} AND t.{quoted(ROWS)} = 0"

    def _changes(self, rows: str) -> str:
        """The rows that come and the rows that go, with their weights."""
        values = ", ".join(f"{self._staged(column.name)} AS {quoted(column.name)}" for column in self.columns)
        removed = f"s.{quoted(self.op)} = 'd'" if self.op else "false"
        key = self.landing.wanted.key
        if not key:
            return f"SELECT CASE WHEN {removed} THEN -1 ELSE 1 END AS w, {values} FROM ({rows}) AS s"
        stored = ", ".join(f"l.{quoted(column.name)}" for column in self.columns)
        joined = " AND ".join(f"l.{quoted(name)} = {self._staged(name)}" for name in key)
        old = f"SELECT -1 AS w, {stored} FROM {self.landing.name} AS l JOIN ({rows}) AS s ON {joined}"
        return f"SELECT 1 AS w, {values} FROM ({rows}) AS s WHERE NOT {removed} UNION ALL {old}"

    def _delta(self) -> str:
        keys = [f"{quoted(source)} AS {quoted(name)}" for name, source in self.groups.items()]
        parts = [part for measure in self.measures for part in _moves(measure)]
        grouped = f" GROUP BY {', '.join(quoted(source) for source in self.groups.values())}" if self.groups else ""
        selected = ", ".join([*keys, f"sum(w)::bigint AS {quoted(ROWS)}", *parts])
        return f"SELECT {selected} FROM {_CHANGES}{grouped}"

    def _land(self, rows: str) -> Iterator[str]:
        key, names = self.landing.wanted.key, [column.name for column in self.columns]
        if key:
            joined = " AND ".join(f"l.{quoted(name)} = {self._staged(name)}" for name in key)
            yield f"DELETE FROM {self.landing.name} AS l USING ({rows}) AS s WHERE {joined}"
        yield f"INSERT INTO {self.landing.name} ({listed(names)}) SELECT {listed(names)} FROM {_CHANGES} WHERE w = 1"

    def _merge(self) -> str:
        names = [*self.groups, ROWS, *(name for measure in self.measures for name in measure.stored)]
        moved = [f"{quoted(ROWS)} = t.{quoted(ROWS)} + EXCLUDED.{quoted(ROWS)}"]
        moved += [setting for measure in self.measures for setting in _settings(measure)]
        key = listed(tuple(self.groups)) if self.groups else quoted("key")
        insertion = f"INSERT INTO {self.table} AS t ({listed(names)}) SELECT {listed(names)} FROM {_DELTA}"
        return f"{insertion} ON CONFLICT ({key}) DO UPDATE SET {', '.join(moved)}"

    def _look_up_again(self, measure: Measure) -> str:
        """The extreme of a group that has lost rows, among those that are left."""
        inside = " AND ".join(f"l.{quoted(s)} IS NOT DISTINCT FROM t.{quoted(n)}" for n, s in self.groups.items()) or "true"
        found = f"SELECT {measure.function}(l.{quoted(measure.source)}) FROM {self.landing.name} AS l WHERE {inside}"
        lost = f"d.{quoted(measure.name + '_lost')}"
        worse = "<=" if measure.function == "min" else ">="
        affected = f"{lost} IS NOT NULL AND ({lost} {worse} t.{quoted(measure.name)} OR t.{quoted(measure.name)} IS NULL)"
        name = quoted(measure.name)
        return f"UPDATE {self.table} AS t SET {name} = ({found}) FROM {_DELTA} AS d WHERE {self._same('t', 'd')} AND {affected}"

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{quoted(name)} IS NOT DISTINCT FROM {right}.{quoted(name)}" for name in self.groups) or "true"

    def _staged(self, name: str) -> str:
        column = next(column for column in self.columns if column.name == name)
        return cast(f"s.{quoted(name)}", column.staged, self.landing.columns[name])


def _moves(measure: Measure) -> list[str]:
    """How a measure of a group moves: its columns in the delta."""
    source, name = quoted(measure.source), quoted(measure.name)
    total = f"coalesce(sum(w * {source}::numeric), 0)"
    count = f"coalesce(sum(w) FILTER (WHERE {source} IS NOT NULL), 0)::bigint" if measure.source else "coalesce(sum(w), 0)::bigint"
    if measure.function == "sum":
        return [f"{total}::{measure.kind} AS {name}"]
    if measure.function == "count":
        return [f"{count}::{measure.kind} AS {name}"]
    if measure.function == "avg":
        helpers = [f"{total} AS {quoted(f'{measure.name}_sum')}", f"{count} AS {quoted(f'{measure.name}_count')}"]
        return [f"({total} / nullif({count}, 0))::{measure.kind} AS {name}", *helpers]
    came = f"{measure.function}({source}) FILTER (WHERE w = 1)::{measure.kind} AS {name}"
    return [came, f"{measure.function}({source}) FILTER (WHERE w = -1)::{measure.kind} AS {quoted(f'{measure.name}_lost')}"]


def _settings(measure: Measure) -> list[str]:
    """How a stored measure takes the move in."""
    name = quoted(measure.name)
    if measure.extreme:
        better = "LEAST" if measure.function == "min" else "GREATEST"
        return [f"{name} = {better}(t.{name}, EXCLUDED.{name})"]
    if measure.function != "avg":
        return [f"{name} = t.{name} + EXCLUDED.{name}"]
    total, count = quoted(f"{measure.name}_sum"), quoted(f"{measure.name}_count")
    sums, counts = f"t.{total} + EXCLUDED.{total}", f"t.{count} + EXCLUDED.{count}"
    value = f"(({sums}) / nullif({counts}, 0))::{measure.kind}"
    return [f"{name} = {value}", f"{total} = {sums}", f"{count} = {counts}"]
