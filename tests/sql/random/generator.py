"""A case from a seed: tables, a query over them, and epochs of changes."""

from __future__ import annotations

from random import Random

from tests.sql.random.cases import Case, Change, Epoch, Row, Table, changed
from tests.sql.random.expressions import EXACT, ROUNDED, Term, stable
from tests.sql.random.relations import Relation, Relations
from tests.sql.random.values import SQL_TYPES, draw_type, draw_value

TABLE_SIZE = 12
"""About how many rows a table has."""


def make_case(seed: int) -> Case:
    dice = Random(seed)
    kinds = [_kinds(dice) for _ in range(dice.choice((1, 2, 2, 3, 4)))]
    relations = [_relation(f"t{place}", each) for place, each in enumerate(kinds)]
    query = _query(dice, relations)
    tables = tuple(_table(dice, relation) for relation in relations)
    used = [place for place, table in enumerate(tables) if f"{table.name} AS" in query.text]
    tables, kinds = tuple(tables[place] for place in used), [kinds[place] for place in used]
    return Case(seed, query.text, tables, _epochs(dice, tables, kinds))


def _relation(name: str, kinds: list[str]) -> Relation:
    columns = tuple(Term("abcdef"[place], kind, ROUNDED if kind == "map" else EXACT) for place, kind in enumerate(kinds))
    return Relation(name, columns, TABLE_SIZE)


def _table(dice: Random, relation: Relation) -> Table:
    """A table that changes in any way, whose rows are only added, or that is given as a changelog."""
    columns = tuple((column.text, SQL_TYPES[column.kind]) for column in relation.columns)
    roll = dice.random()
    if roll < 0.6:
        return Table(relation.text, columns, append_only=roll < 0.25)
    keys = [column.text for column in stable(relation.columns)]
    key = dice.sample(keys, min(len(keys), dice.choice((1, 1, 2, 2, 3))))
    return Table(relation.text, columns, key=tuple(key), sequenced=dice.random() < 0.5)


def _query(dice: Random, tables: list[Relation]) -> Relation:
    """A query that reads a table: one of rows in its text only is no case."""
    while True:
        query = Relations(dice, tables, dice.choice((1, 1, 1, 2, 2, 2, 3, 3, 4, 6))).query()
        if any(f"{table.text} AS" in query.text for table in tables):
            return query


def _kinds(dice: Random) -> list[str]:
    """Types of columns; the first is one that tables often share."""
    return [dice.choice(("bigint", "bigint", "int", "string")), *(draw_type(dice) for _ in range(dice.randint(1, 5)))]


def _epochs(dice: Random, tables: tuple[Table, ...], kinds: list[list[str]]) -> tuple[Epoch, ...]:
    writers = [Writer(dice, table, types, dice.choice((0.0, 0.15, 0.15, 0.15, 0.5))) for table, types in zip(tables, kinds, strict=True)]
    count = dice.choice((4, 4, 4, 4, 5, 5, 5, 6, 6, 11))
    return tuple({writer.table.name: tuple(writer.epoch(number)) for writer in writers} for number in range(count))


class Writer:
    """Makes the changes of one table."""

    def __init__(self, dice: Random, table: Table, kinds: list[str], nulls: float) -> None:
        self.dice, self.table, self.kinds, self.nulls = dice, table, kinds, nulls
        self.rows: list[Row] = []

    def epoch(self, number: int) -> list[Change]:
        if self.dice.random() < (0.1 if number == 0 else 0.2):
            return []
        if number > 1 and not self.table.append_only and self.dice.random() < 0.05:
            gone = [(row, -1) for row in self.rows]
            self.rows.clear()
            return gone
        count, changes = self.dice.randint(3, 10) if number == 0 else self.dice.randint(1, 5), []
        for _ in range(count):
            changes += self._change_by_key() if self.table.key else self._change(number == 0)
        if self.table.key:
            self.rows = changed(self.table, self.rows, changes)
        else:
            self.dice.shuffle(changes)
        return changes

    def _new(self) -> Row:
        return tuple(draw_value(self.dice, kind, self.nulls) for kind in self.kinds)

    def _change_by_key(self) -> list[Change]:
        """The rows of a changelog: of new keys, of known ones with other values, deletes with the key alone and of unknown keys."""
        new, places = self._new(), self.table.places
        if self.rows and self.dice.random() < 0.6:
            old = self.dice.choice(self.rows)
            new = tuple(old[place] if place in places else value for place, value in enumerate(new))
        op = self.dice.choice((1, 1, 1, 2, 2, 2, 3, -1, -1))
        if op < 0 and self.dice.random() < 0.5:
            new = tuple(value if place in places else None for place, value in enumerate(new))
        return [(new, op)]

    def _change(self, first: bool) -> list[Change]:
        dice, rows = self.dice, self.rows
        roll = dice.random() / (2 if first else 1)
        old = dice.choice(rows) if rows else None
        if old is None or roll < 0.4:
            rows.append(self._new())
            return [(rows[-1], 1)]
        if roll < 0.5 or self.table.append_only:
            rows.append(old)
            return [(old, 1)]
        del rows[next(place for place, row in enumerate(rows) if row is old)]
        if roll < 0.75:
            return [(old, -1)]
        at = dice.randrange(len(self.kinds))
        updated = (*old[:at], draw_value(dice, self.kinds[at], self.nulls), *old[at + 1 :])
        rows.append(updated)
        return [(old, -1), (updated, 1)]
