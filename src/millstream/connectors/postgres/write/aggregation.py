"""Maintains aggregates in a table, by merges without triggers.

The landing table holds the current row of each key. An epoch's changes are a set of weighted rows: the new row of a key has weight +1, the
row that it replaces or deletes -1. Sums and counts of a group change by the weighted sum; a minimum or maximum that loses its row is
computed again from the group's rows. So updates and deletes are as correct as inserts. Without a key every row counts separately (`d`
subtracts its own values), and the landing table is a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from millstream.clients.postgres import quote_name
from millstream.connectors.postgres.write.columns import StagedColumn, cast
from millstream.connectors.postgres.write.target import TableTarget, join_names

Function = Literal["sum", "count", "avg", "min", "max"]
ROWS = "_rows"
"""The number of rows of a group; a group without rows is removed."""
_CHANGES, _DELTA = "_millstream_changes", "_millstream_delta"


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the aggregate."""

    name: str
    function: Function
    source: str
    """The aggregated column; empty: the rows themselves."""
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

    landing: TableTarget
    columns: tuple[StagedColumn, ...]
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
            yield f"DELETE FROM {self.table} AS t USING {_DELTA} AS d WHERE {self._same('t', 'd')} AND t.{quote_name(ROWS)} = 0"

    def _changes(self, rows: str) -> str:
        """The new and the replaced rows, with their weights."""
        values = ", ".join(f"{self._staged_value(column.name)} AS {quote_name(column.name)}" for column in self.columns)
        removed = f"s.{quote_name(self.op)} = 'd'" if self.op else "false"
        key = self.landing.wanted.key
        if not key:
            return f"SELECT CASE WHEN {removed} THEN -1 ELSE 1 END AS w, {values} FROM ({rows}) AS s"
        stored = ", ".join(f"l.{quote_name(column.name)}" for column in self.columns)
        joined = " AND ".join(f"l.{quote_name(name)} = {self._staged_value(name)}" for name in key)
        old = f"SELECT -1 AS w, {stored} FROM {self.landing.name} AS l JOIN ({rows}) AS s ON {joined}"
        return f"SELECT 1 AS w, {values} FROM ({rows}) AS s WHERE NOT {removed} UNION ALL {old}"

    def _delta(self) -> str:
        keys = [f"{quote_name(source)} AS {quote_name(name)}" for name, source in self.groups.items()]
        parts = [part for measure in self.measures for part in _moves(measure)]
        grouped = f" GROUP BY {', '.join(quote_name(source) for source in self.groups.values())}" if self.groups else ""
        selected = ", ".join([*keys, f"sum(w)::bigint AS {quote_name(ROWS)}", *parts])
        return f"SELECT {selected} FROM {_CHANGES}{grouped}"

    def _land(self, rows: str) -> Iterator[str]:
        key, names = self.landing.wanted.key, [column.name for column in self.columns]
        if key:
            joined = " AND ".join(f"l.{quote_name(name)} = {self._staged_value(name)}" for name in key)
            yield f"DELETE FROM {self.landing.name} AS l USING ({rows}) AS s WHERE {joined}"
        yield f"INSERT INTO {self.landing.name} ({join_names(names)}) SELECT {join_names(names)} FROM {_CHANGES} WHERE w = 1"

    def _merge(self) -> str:
        names = [*self.groups, ROWS, *(name for measure in self.measures for name in measure.stored)]
        moved = [f"{quote_name(ROWS)} = t.{quote_name(ROWS)} + EXCLUDED.{quote_name(ROWS)}"]
        moved += [setting for measure in self.measures for setting in _settings(measure)]
        key = join_names(tuple(self.groups)) if self.groups else quote_name("key")
        insertion = f"INSERT INTO {self.table} AS t ({join_names(names)}) SELECT {join_names(names)} FROM {_DELTA}"
        return f"{insertion} ON CONFLICT ({key}) DO UPDATE SET {', '.join(moved)}"

    def _look_up_again(self, measure: Measure) -> str:
        """The new extreme of a group that has lost rows."""
        inside = " AND ".join(f"l.{quote_name(s)} IS NOT DISTINCT FROM t.{quote_name(n)}" for n, s in self.groups.items()) or "true"
        found = f"SELECT {measure.function}(l.{quote_name(measure.source)}) FROM {self.landing.name} AS l WHERE {inside}"
        lost = f"d.{quote_name(measure.name + '_lost')}"
        worse = "<=" if measure.function == "min" else ">="
        affected = f"{lost} IS NOT NULL AND ({lost} {worse} t.{quote_name(measure.name)} OR t.{quote_name(measure.name)} IS NULL)"
        name = quote_name(measure.name)
        return f"UPDATE {self.table} AS t SET {name} = ({found}) FROM {_DELTA} AS d WHERE {self._same('t', 'd')} AND {affected}"

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{quote_name(name)} IS NOT DISTINCT FROM {right}.{quote_name(name)}" for name in self.groups) or "true"

    def _staged_value(self, name: str) -> str:
        column = next(column for column in self.columns if column.name == name)
        return cast(f"s.{quote_name(name)}", column.staged, self.landing.columns[name])


def _moves(measure: Measure) -> list[str]:
    """The change of a group's measure: its columns in the delta."""
    source, name = quote_name(measure.source), quote_name(measure.name)
    total = f"coalesce(sum(w * {source}::numeric), 0)"
    count = f"coalesce(sum(w) FILTER (WHERE {source} IS NOT NULL), 0)::bigint" if measure.source else "coalesce(sum(w), 0)::bigint"
    if measure.function == "sum":
        return [f"{total}::{measure.kind} AS {name}"]
    if measure.function == "count":
        return [f"{count}::{measure.kind} AS {name}"]
    if measure.function == "avg":
        helpers = [f"{total} AS {quote_name(f'{measure.name}_sum')}", f"{count} AS {quote_name(f'{measure.name}_count')}"]
        return [f"({total} / nullif({count}, 0))::{measure.kind} AS {name}", *helpers]
    came = f"{measure.function}({source}) FILTER (WHERE w = 1)::{measure.kind} AS {name}"
    return [came, f"{measure.function}({source}) FILTER (WHERE w = -1)::{measure.kind} AS {quote_name(f'{measure.name}_lost')}"]


def _settings(measure: Measure) -> list[str]:
    """How the change is applied to a stored measure."""
    name = quote_name(measure.name)
    if measure.extreme:
        better = "LEAST" if measure.function == "min" else "GREATEST"
        return [f"{name} = {better}(t.{name}, EXCLUDED.{name})"]
    if measure.function != "avg":
        return [f"{name} = t.{name} + EXCLUDED.{name}"]
    total, count = quote_name(f"{measure.name}_sum"), quote_name(f"{measure.name}_count")
    sums, counts = f"t.{total} + EXCLUDED.{total}", f"t.{count} + EXCLUDED.{count}"
    value = f"(({sums}) / nullif({counts}, 0))::{measure.kind}"
    return [f"{name} = {value}", f"{total} = {sums}", f"{count} = {counts}"]
