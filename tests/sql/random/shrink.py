"""Makes a failing case small: epochs, rows, columns and parts of the query go while the failure stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.merge_subqueries import merge_subqueries
from tests.sql.random.cases import Case, Epoch, InvalidCaseError, check

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, seconds: float = 120) -> Case:
    """The smallest case that is found in the time."""
    end = time.monotonic() + seconds
    tried: set[str] = set()
    steps = (_fewer_epochs, _fewer_changes, _simpler_queries, _fewer_tables, _fewer_columns, _any_changes)
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for step in steps:
            found = _first(step(case), fails, tried, end)
            while found is not None:
                case, smaller = found, True
                found = _first(step(case), fails, tried, end)
    return case


def _first(candidates: Iterator[Case], fails: Fails, tried: set[str], end: float) -> Case | None:
    for candidate in candidates:
        if time.monotonic() > end:
            return None
        if str(candidate) in tried:
            continue
        tried.add(str(candidate))
        try:
            check(candidate)
        except InvalidCaseError:
            continue
        if fails(candidate):
            return candidate
    return None


# Data


def _fewer_epochs(case: Case) -> Iterator[Case]:
    epochs = case.epochs
    for count in range(1, len(epochs)):
        yield replace(case, epochs=epochs[:count])
    for place in range(len(epochs)):
        yield replace(case, epochs=(*epochs[:place], *epochs[place + 1 :]))
    for place in range(len(epochs) - 1):
        yield replace(case, epochs=(*epochs[:place], _joined(epochs[place], epochs[place + 1]), *epochs[place + 2 :]))


def _joined(first: Epoch, second: Epoch) -> Epoch:
    return {name: (*first.get(name, ()), *second.get(name, ())) for name in {**first, **second}}


def _fewer_changes(case: Case) -> Iterator[Case]:
    """Half of the changes of a table in an epoch, then single ones; with an insert its delete."""
    for place, epoch in enumerate(case.epochs):
        for name, changes in epoch.items():
            half = len(changes) // 2
            for kept in ((), changes[:half], changes[half:]) if half else ():
                yield _with_changes(case, place, {**epoch, name: kept})
    for place, epoch in enumerate(case.epochs):
        for name, changes in epoch.items():
            for at, (row, weight) in enumerate(changes):
                without = _with_changes(case, place, {**epoch, name: (*changes[:at], *changes[at + 1 :])})
                yield without
                yield from _without_opposite(without, name, repr(row), weight)


def _without_opposite(case: Case, name: str, row: str, weight: int) -> Iterator[Case]:
    for place, epoch in enumerate(case.epochs):
        changes = epoch.get(name, ())
        for at, (other, other_weight) in enumerate(changes):
            if repr(other) == row and other_weight == -weight:
                yield _with_changes(case, place, {**epoch, name: (*changes[:at], *changes[at + 1 :])})
                return


def _with_changes(case: Case, place: int, epoch: Epoch) -> Case:
    return replace(case, epochs=(*case.epochs[:place], epoch, *case.epochs[place + 1 :]))


def _fewer_tables(case: Case) -> Iterator[Case]:
    for table in case.tables:
        if len(case.tables) > 1:
            epochs = tuple({name: changes for name, changes in epoch.items() if name != table.name} for epoch in case.epochs)
            yield replace(case, tables=tuple(each for each in case.tables if each != table), epochs=epochs)


def _fewer_columns(case: Case) -> Iterator[Case]:
    for number, table in enumerate(case.tables):
        for at in range(len(table.columns) if len(table.columns) > 1 else 0):
            if table.columns[at][0] in table.key:
                continue
            columns = (*table.columns[:at], *table.columns[at + 1 :])
            tables = (*case.tables[:number], replace(table, columns=columns), *case.tables[number + 1 :])
            yield replace(case, tables=tables, epochs=tuple(_without_column(epoch, table.name, at) for epoch in case.epochs))


def _without_column(epoch: Epoch, name: str, at: int) -> Epoch:
    return {**epoch, name: tuple(((*row[:at], *row[at + 1 :]), weight) for row, weight in epoch.get(name, ()))}


def _any_changes(case: Case) -> Iterator[Case]:
    """How the table is given may not matter."""
    for number, table in enumerate(case.tables):
        plain = replace(table, append_only=False, sequenced=False)
        if plain != table:
            yield replace(case, tables=(*case.tables[:number], plain, *case.tables[number + 1 :]))


# The query


def _simpler_queries(case: Case) -> Iterator[Case]:
    """What Spark does not accept is no failure, so a simpler text may be wrong."""
    try:
        tree = sqlglot.parse_one(case.query, dialect="spark")
    except SqlglotError:
        return
    whole = tree.sql("spark")
    if whole != case.query:
        yield replace(case, query=whole)
    texts = {text for text in map(_text, (*_flattened(tree), *_reduced(tree))) if text and len(text) < len(whole)}
    yield from (replace(case, query=text) for text in sorted(texts, key=lambda text: (len(text), text)))


def _text(make: Callable[[], exp.Expr]) -> str | None:
    try:
        return make().sql("spark")
    except Exception:  # noqa: BLE001 — a tree that lacks a part may have no text
        return None


def _flattened(tree: exp.Expr) -> Iterator[Callable[[], exp.Expr]]:
    """Inner queries in place of the whole."""
    for each in tree.find_all(exp.Query):
        if not isinstance(each, exp.Subquery):
            yield each.copy
    yield lambda: merge_subqueries(tree.copy())


def _reduced(tree: exp.Expr) -> Iterator[Callable[[], exp.Expr]]:
    """Every tree with one part less, or with one expression replaced by a part of it."""
    for place, node in enumerate(tree.walk()):
        for name, value in node.args.items():
            if isinstance(value, list):
                yield from (partial(_without, tree, place, name, at) for at in range(len(value)))
            elif name not in {"this", "from", "from_", "alias"} and value is not None:
                yield partial(_without, tree, place, name)
        if place:
            yield from (partial(_replaced, tree, place, number) for number in range(len(_inner(node))))


def _without(tree: exp.Expr, place: int, name: str, at: int | None = None) -> exp.Expr:
    copy = tree.copy()
    node = list(copy.walk())[place]
    if at is None:
        node.set(name, None)
    else:
        del node.args[name][at]
    return copy


def _replaced(tree: exp.Expr, place: int, number: int) -> exp.Expr:
    copy = tree.copy()
    node = list(copy.walk())[place]
    node.replace(_inner(node)[number].copy())
    return copy


def _inner(node: exp.Expr) -> list[exp.Expr]:
    """The parts that may stand in the place of the whole."""
    same = exp.Condition | exp.Query
    return [other for other in node.iter_expressions() if isinstance(other, same)] if isinstance(node, same) else []
