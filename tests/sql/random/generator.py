"""A case from a seed: tables, a query over them, and epochs of changes."""

from __future__ import annotations

from random import Random

from tests.sql.random.cases import Case, Change, Epoch, Row, Table
from tests.sql.random.expressions import EXACT, ROUNDED, Term
from tests.sql.random.relations import Relation, Relations
from tests.sql.random.values import SQL_TYPES, draw_type, draw_value

TABLE_SIZE = 12
"""About how many rows a table has."""


def make_case(seed: int) -> Case:
    dice = Random(seed)
    kinds = [_kinds(dice) for _ in range(dice.choice((1, 2, 2, 3, 4)))]
    relations = [_relation(f"t{place}", each) for place, each in enumerate(kinds)]
    query = _query(dice, relations)
    tables = tuple(
        Table(relation.text, tuple((column.text, SQL_TYPES[column.kind]) for column in relation.columns), dice.random() < 0.2)
        for relation in relations
    )
    used = [place for place, table in enumerate(tables) if f"{table.name} AS" in query.text]
    tables, kinds = tuple(tables[place] for place in used), [kinds[place] for place in used]
    return Case(seed, query.text, tables, _epochs(dice, tables, kinds))


def _relation(name: str, kinds: list[str]) -> Relation:
    columns = tuple(Term("abcdef"[place], kind, ROUNDED if kind == "map" else EXACT) for place, kind in enumerate(kinds))
    return Relation(name, columns, TABLE_SIZE)


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
    present: list[list[Row]] = [[] for _ in tables]
    epochs: list[Epoch] = []
    for number in range(dice.choice((4, 4, 4, 4, 5, 5, 5, 6, 6, 11))):
        epochs.append({})
        for table, types, rows in zip(tables, kinds, present, strict=True):
            epochs[-1][table.name] = tuple(_changes(dice, table, types, rows, number))
    return tuple(epochs)


def _changes(dice: Random, table: Table, kinds: list[str], rows: list[Row], number: int) -> list[Change]:
    """The changes of one table in one epoch, which are also made to `rows`."""
    if dice.random() < (0.1 if number == 0 else 0.2):
        return []
    if number > 1 and not table.append_only and dice.random() < 0.05:
        gone = [(row, -1) for row in rows]
        rows.clear()
        return gone
    changes: list[Change] = []
    for _ in range(dice.randint(3, 10) if number == 0 else dice.randint(1, 5)):
        changes += _change(dice, kinds, rows, table.append_only, number == 0)
    dice.shuffle(changes)
    return changes


def _change(dice: Random, kinds: list[str], rows: list[Row], append_only: bool, first: bool) -> list[Change]:
    roll = dice.random() / (2 if first else 1)
    new = tuple(draw_value(dice, kind) for kind in kinds)
    old = dice.choice(rows) if rows else None
    if old is None or roll < 0.4:
        rows.append(new)
        return [(new, 1)]
    if roll < 0.5 or append_only:
        rows.append(old)
        return [(old, 1)]
    del rows[next(place for place, row in enumerate(rows) if row is old)]
    if roll < 0.75:
        return [(old, -1)]
    at = dice.randrange(len(kinds))
    updated = (*old[:at], draw_value(dice, kinds[at]), *old[at + 1 :])
    rows.append(updated)
    return [(old, -1), (updated, 1)]
