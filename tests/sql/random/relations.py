"""A small grammar of relations: each is a query with typed columns, and may stand in FROM of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.sql.random.expressions import EXACT, STABLE, Aggregates, Expressions, Scope, Term, stable
from tests.sql.random.values import NUMBERS, VALUES, draw_type, draw_value, literal

LARGEST = 1500
"""More rows, as estimated, are not joined."""


@dataclass(frozen=True)
class Relation:
    text: str
    columns: tuple[Term, ...]
    """`text` of a column is its name"""
    size: int
    """about how many rows it has"""


@dataclass(frozen=True)
class Source:
    """What stands in FROM: a table or a definition of WITH by its name, or a query."""

    text: str
    scope: tuple[Term, ...]
    size: int


class Relations:
    def __init__(self, dice: Random, tables: Sequence[Relation], budget: int) -> None:
        self.dice = dice
        self.make = Expressions(dice)
        self.aggregates = Aggregates(dice, self.make)
        self.named = [*tables]
        self.budget = budget
        self._names = 0

    def query(self) -> Relation:
        """A whole query: definitions, and the body."""
        definitions: list[str] = []
        if self.dice.random() < 0.3:
            definitions = [self._define() for _ in range(self.dice.choice((1, 1, 2)))]
        body = self.relation()
        roll = self.dice.random()
        if roll < 0.01:
            body = self._same_names(body)
        elif roll < 0.2:
            body = self._ordered_rows(body)
        text = f"WITH {', '.join(definitions)} {body.text}" if definitions else body.text
        return Relation(text, body.columns, body.size)

    def _same_names(self, body: Relation) -> Relation:
        """A result may have several columns of one name."""
        source = self._nested(body)
        return Relation(f"SELECT {', '.join(f'{term.text} AS x' for term in source.scope)} FROM {source.text}", body.columns, body.size)

    def _ordered_rows(self, body: Relation) -> Relation:
        """ORDER BY of a whole query."""
        if len(stable(body.columns)) < len(body.columns):
            return body
        source = self._nested(body)
        text, columns = self._items(source.scope)
        limit = f" LIMIT {self.dice.randint(1, 5)}" if self.dice.random() < 0.4 else ""
        return Relation(f"SELECT {text} FROM {source.text} ORDER BY {self._order(columns)}{limit}", columns, body.size)

    def _define(self) -> str:
        body = self.relation()
        name = self._name("q")
        self.named += [Relation(name, body.columns, body.size)] * (len(self.named) + 1)  # likely to be used, and twice
        return f"{name} AS ({body.text})"

    def relation(self) -> Relation:
        self.budget -= 1
        makers: dict[Callable[[], Relation], int] = {
            self._select: 5,
            self._join: 7,
            self._group: 6,
            self._grouping_sets: 2,
            self._total: 2,
            self._window: 4,
            self._distinct: 2,
            self._set: 5,
            self._limit: 2,
            self._explode: 1,
            self._pivot: 1,
            self._with_subquery: 5,
            self._lateral: 2,
        }
        return self.dice.choices(list(makers), list(makers.values()))[0]()

    def source(self, *, values: bool = False) -> Source:
        roll = self.dice.random()
        if self.budget > 0 and roll < 0.6:
            return self._nested(self.relation())
        if values and roll > 0.9:
            return self._values()
        relation, alias = self.dice.choice(self.named), self._name("a")
        return Source(f"{relation.text} AS {alias}", _scope(alias, relation.columns), relation.size)

    def _nested(self, relation: Relation) -> Source:
        alias = self._name("a")
        return Source(f"({relation.text}) AS {alias}", _scope(alias, relation.columns), relation.size)

    def _values(self) -> Source:
        alias, kinds = self._name("a"), [draw_type(self.dice) for _ in range(self.dice.randint(1, 3))]
        kinds = [kind for kind in kinds if kind != "map"] or ["bigint"]
        count = self.dice.randint(1, 4)
        rows = ", ".join(f"({', '.join(literal(kind, draw_value(self.dice, kind)) for kind in kinds)})" for _ in range(count))
        columns = tuple(Term(self._name("v"), kind) for kind in kinds)
        return Source(f"(VALUES {rows}) AS {alias}({_names(columns)})", _scope(alias, columns), count)

    # Rows of one input

    def _select(self) -> Relation:
        source = self.source(values=True)
        text, columns = self._projection(source.scope) if self.dice.random() < 0.9 else ("*", _unqualified(source.scope))
        return Relation(f"SELECT {text} FROM {source.text}{self._where(source.scope, 0.45)}", columns, source.size)

    def _projection(self, scope: Scope, distinct: bool = False) -> tuple[str, tuple[Term, ...]]:
        """Some columns, some expressions, each with a new name."""
        chosen = [term for term in (stable(scope) if distinct else scope) if self.dice.random() < 0.7]
        chosen += [self.make.any_term(scope, 2) for _ in range(self.dice.choice((0, 0, 1, 2)) if chosen else 1)]
        return self._items(chosen)

    def _items(self, terms: Sequence[Term]) -> tuple[str, tuple[Term, ...]]:
        columns = tuple(Term(self._name("c"), term.kind, term.grade) for term in terms)
        return ", ".join(f"{term.text} AS {column.text}" for term, column in zip(terms, columns, strict=True)), columns

    def _where(self, scope: Scope, chance: float) -> str:
        return f" WHERE {self.make.condition(scope, 1)}" if self.dice.random() < chance else ""

    def _distinct(self) -> Relation:
        source = self.source(values=True)
        text, columns = self._projection(source.scope, distinct=True)
        return Relation(f"SELECT DISTINCT {text} FROM {source.text}{self._where(source.scope, 0.3)}", columns, source.size)

    def _limit(self) -> Relation:
        source = self.source()
        terms = stable(source.scope)
        if not terms:
            return self._select()
        text, columns = self._items(terms)
        count, skipped = self.dice.choice((0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 7)), self.dice.randint(1, 3)
        offset = f" OFFSET {skipped}" if self.dice.random() < 0.3 else ""
        limit = "" if offset and self.dice.random() < 0.3 else f" LIMIT {count}"
        return Relation(f"SELECT {text} FROM {source.text} ORDER BY {self._order(columns)}{limit}{offset}", columns, count)

    def _order(self, terms: Sequence[Term]) -> str:
        """All columns: rows at the same place are equal."""
        mixed = self.dice.sample(list(terms), len(terms))
        return ", ".join(term.text + self.dice.choice(("", "", " DESC", " DESC NULLS FIRST", " ASC NULLS LAST")) for term in mixed)

    def _explode(self) -> Relation:
        source = self.source()
        array = self.make.term(source.scope, "array").text
        alias, name = self._name("a"), self._name("e")
        outer, position = self.dice.choice(("", "OUTER ")), self.dice.random() < 0.3
        names = [Term(f"{alias}.{name}p", "int")] * position + [Term(f"{alias}.{name}", "bigint")]
        scope = (*source.scope, *names)
        function = "posexplode" if position else "explode"
        view = f"LATERAL VIEW {outer}{function}({array}) {alias} AS {', '.join(term.text.split('.')[1] for term in names)}"
        text, columns = self._items([*self.dice.sample(list(source.scope), min(2, len(source.scope))), *names])
        return Relation(f"SELECT {text} FROM {source.text} {view}{self._where(scope, 0.3)}", columns, source.size * 2)

    # Windows

    def _window(self) -> Relation:
        source = self.source()
        terms = stable(source.scope)
        if not terms:
            return self._select()
        keys = self.dice.sample(terms, min(len(terms), self.dice.choice((0, 1, 1, 2))))
        order = f"ORDER BY {self._order(terms)}"  # one: which of two equal rows is first in one order and in another is left open by SQL
        calls = [self._over(terms, keys, order) for _ in range(self.dice.choice((1, 1, 2)))]
        kept = self.dice.sample(terms, self.dice.randint(1, len(terms)))
        text, columns = self._items([*kept, *calls])
        inner = Relation(f"SELECT {text} FROM {source.text}{self._where(source.scope, 0.2)}", columns, source.size)
        return self._qualified(inner, len(calls)) if self.dice.random() < 0.3 else inner

    def _over(self, terms: Sequence[Term], keys: Sequence[Term], order: str) -> Term:
        partition = f"PARTITION BY {', '.join(key.text for key in keys)} " if keys else ""
        value = self.make.any_term(terms)
        choices: list[tuple[str, str, int]] = [(f"{name}()", "int", EXACT) for name in ("row_number", "row_number", "rank", "dense_rank")]
        choices += [(f"{name}({value.text}, {self.dice.randint(1, 2)})", value.kind, value.grade) for name in ("lag", "lead")]
        choices += [(f"{name}({value.text})", value.kind, value.grade) for name in ("first_value", "last_value")]
        function, kind, grade = self.dice.choice(choices)
        tied = order  # equal rows share a rank; for frames of rows and other functions SQL leaves their order open
        if self.dice.random() < 0.15 and "rank" in function:
            tied = f"ORDER BY {self._order([self.dice.choice(list(terms))])}"
        if self.dice.random() < 0.4:
            number = self.make.any_term(terms, kinds=NUMBERS)
            total = Term(f"sum({number.text})", "bigint" if number.kind == "int" else number.kind, EXACT if number.grade == EXACT else 0)
            term = self.dice.choice((total, total, Term("count(*)", "bigint"), Term(f"max({number.text})", number.kind, number.grade)))
            frames = ("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING")
            inside = self.dice.choice((partition, f"{partition}{order}{self.dice.choice(frames)}"))
            return Term(f"{term.text} OVER ({inside})", term.kind, term.grade)
        return Term(f"{function} OVER ({partition}{tied})", kind, grade)

    def _qualified(self, inner: Relation, calls: int) -> Relation:
        """The filter on a window function that other systems call QUALIFY."""
        source = self._nested(inner)
        ranks = [term for term in source.scope[-calls:] if term.kind == "int"]
        condition = f"{ranks[0].text} <= {self.dice.randint(1, 3)}" if ranks else self.make.condition(source.scope[-calls:])
        text, columns = self._items(source.scope)
        return Relation(f"SELECT {text} FROM {source.text} WHERE {condition}", columns, inner.size)

    # Groups

    def _group(self) -> Relation:
        source = self.source(values=True)
        keys = [self.make.any_term(source.scope, self.dice.choice((0, 0, 0, 1))) for _ in range(self.dice.choice((1, 1, 2, 3)))]
        keys = [key for key in keys if "." in key.text] or [self.make.any_term(source.scope, 1)]
        calls = [self.aggregates.call(source.scope) for _ in range(self.dice.randint(1, 3))]
        text, columns = self._items([*keys, *calls])
        group = ", ".join(str(place + 1) for place in range(len(keys)))
        having = f" HAVING {self.make.condition([*keys, *calls])}" if self.dice.random() < 0.3 else ""
        where = self._where(source.scope, 0.3)
        return Relation(f"SELECT {text} FROM {source.text}{where} GROUP BY {group}{having}", columns, max(1, source.size // 2))

    def _total(self) -> Relation:
        """One row, also when there is nothing to aggregate."""
        source = self.source()
        calls = [self.aggregates.call(source.scope) for _ in range(self.dice.randint(1, 3))]
        text, columns = self._items(calls)
        having = f" HAVING {self.make.condition(calls)}" if self.dice.random() < 0.2 else ""
        return Relation(f"SELECT {text} FROM {source.text}{self._where(source.scope, 0.5)}{having}", columns, 1)

    def _grouping_sets(self) -> Relation:
        source = self.source()
        terms = list(dict.fromkeys(stable(source.scope)))
        if not terms:
            return self._total()
        keys = self.dice.sample(terms, min(len(terms), self.dice.randint(1, 3)))
        names = [key.text for key in keys]
        sets = [self.dice.sample(names, self.dice.randint(0, len(names))) for _ in range(self.dice.randint(1, 3))]
        listed = ", ".join(f"({', '.join(each)})" for each in [names, *sets])
        group = self.dice.choice((f"ROLLUP({', '.join(names)})", f"CUBE({', '.join(names)})", f"GROUPING SETS ({listed})"))
        calls = [self.aggregates.call(source.scope) for _ in range(self.dice.randint(1, 2))]
        calls += self.dice.choice(([], [Term("grouping_id()", "bigint")], [Term(f"CAST(grouping({names[0]}) AS int)", "int")]))
        text, columns = self._items([*keys, *calls])
        return Relation(f"SELECT {text} FROM {source.text} GROUP BY {group}", columns, source.size * 2)

    def _pivot(self) -> Relation:
        source = self.source()
        terms = stable(source.scope)
        pivots = [term for term in terms if term.kind in {"bigint", "int", "string", "boolean"}]
        if not pivots:
            return self._group()
        pivot, value = self.dice.choice(pivots), self.make.any_term(terms, kinds=NUMBERS)
        keys = self.dice.sample(terms, self.dice.randint(0, min(2, len(terms))))
        text, columns = self._items([*keys, pivot, value])
        function = self.dice.choice(("sum", "max", "count"))
        kind = "bigint" if function == "count" or (function == "sum" and value.kind == "int") else value.kind
        grade = value.grade if function != "sum" or value.grade == EXACT else 0
        cells = tuple(Term(self._name("p"), kind, grade if kind == value.kind else EXACT) for _ in range(2))
        domain = self.dice.sample(sorted(set(VALUES[pivot.kind])), 2)
        listed = ", ".join(f"{literal(pivot.kind, each)} AS {cell.text}" for each, cell in zip(domain, cells, strict=True))
        call = f"{function}({columns[-1].text}) FOR {columns[-2].text} IN ({listed})"
        return Relation(
            f"SELECT * FROM (SELECT {text} FROM {source.text}) PIVOT ({call})", (*columns[:-2], *cells), max(1, source.size // 2)
        )

    # Several inputs

    def _join(self) -> Relation:
        first = self.source()
        text, scope, size, hidden = first.text, first.scope, first.size, False
        for _ in range(self.dice.choice((1, 1, 1, 1, 2, 2, 3))):
            other = self.source(values=True)
            word, condition, rows = self._joined(scope, size, other)
            if rows > LARGEST:
                continue
            hidden = word in {"LEFT SEMI JOIN", "LEFT ANTI JOIN"}
            text, size = f"{text} {word} {other.text}{condition}", rows
            scope = scope if hidden else (*scope, *other.scope)
        chosen = self.dice.sample(list(scope), self.dice.randint(1, min(5, len(scope))))
        chosen += [self.make.any_term(scope, 2)] if self.dice.random() < 0.3 else []
        items, columns = self._items(chosen)
        return Relation(f"SELECT {items} FROM {text}{self._where(scope, 0.25)}", columns, size)

    def _joined(self, scope: Scope, size: int, other: Source) -> tuple[str, str, int]:
        """The kind of a join, its condition, and about how many rows it gives."""
        equal = self.make.equality(scope, other.scope)
        both = (*scope, *other.scope)
        if equal is None or self.dice.random() < 0.08:
            if size * other.size > 400 or self.dice.random() < 0.5:
                return "CROSS JOIN", "", size * other.size
            equal = self.make.condition(both)
        word = self.dice.choice(
            ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        )
        more = [self.make.equality(scope, other.scope)] if self.dice.random() < 0.2 else []
        more += [self.make.condition(both)] if self.dice.random() < 0.3 else []
        rows = size if "SEMI" in word or "ANTI" in word else max(size, other.size, size * other.size // 4)
        return word, f" ON {' AND '.join(each for each in (equal, *more) if each)}", rows

    def _lateral(self) -> Relation:
        outer, inner = self.source(), self.source()
        equal = self.make.equality(inner.scope, outer.scope)
        if equal is None:
            return self._join()
        alias, first = self._name("a"), stable(inner.scope)
        if self.dice.random() < 0.3:
            calls, columns = self._items(first)
            end = f" ORDER BY {self._order(columns)} LIMIT {self.dice.randint(1, 2)}"
        else:
            calls, columns = self._items([self.aggregates.call(inner.scope)])
            end = ""
        scope = (*outer.scope, *_scope(alias, columns))
        text, columns = self._items(scope)
        word = self.dice.choice(("JOIN", "LEFT JOIN"))
        lateral = f"LATERAL (SELECT {calls} FROM {inner.text} WHERE {equal}{end}) AS {alias}{' ON true' if word == 'LEFT JOIN' else ''}"
        return Relation(f"SELECT {text} FROM {outer.text} {word} {lateral}", columns, outer.size)

    def _set(self) -> Relation:
        left, right = self.source(), self.source(values=True)
        terms = stable(left.scope)
        if not terms:
            return self._select()
        shared = [term for term in terms if term.kind in {other.kind for other in stable(right.scope)}]
        terms = shared if self.dice.random() < 0.9 and shared else terms
        chosen = self.dice.sample(terms, min(len(terms), self.dice.choice((1, 1, 2, 3))))
        text, columns = self._items(chosen)
        others = [self.make.term(right.scope, term.kind, self.dice.choice((0, 0, 0, 1))) for term in chosen]
        columns = tuple(Term(a.text, a.kind, min(a.grade, b.grade)) for a, b in zip(columns, others, strict=True))
        words = ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        second = f"SELECT {', '.join(term.text for term in others)} FROM {right.text}{self._where(right.scope, 0.3)}"
        first = f"SELECT {text} FROM {left.text}{self._where(left.scope, 0.3)}"
        return Relation(f"{first} {self.dice.choice(words)} {second}", columns, left.size + right.size)

    # Subqueries

    def _with_subquery(self) -> Relation:
        outer = self.source()
        scope: tuple[Term, ...] = outer.scope
        where = self._where(scope, 0.2)
        maker = self.dice.choice((self._exists, self._in, self._in, self._in_pair, self._compared))
        roll = self.dice.random()
        if roll < 0.25:
            scope = (*scope, self._scalar(scope, self.source()))
        elif roll < 0.35:
            scope = (*scope, Term(f"({maker(scope, self.source())})", "boolean"))
        else:
            condition = maker(scope, self.source())
            if self.dice.random() < 0.2:
                condition = f"({condition} OR {self.make.condition(scope, 0)})"
            where = f"{where} AND {condition}" if where else f" WHERE {condition}"
        text, columns = self._items(scope)
        return Relation(f"SELECT {text} FROM {outer.text}{where}", columns, outer.size)

    def _correlation(self, outer: Scope, inner: Scope, chance: float) -> str:
        equal = self.make.equality(inner, outer) if self.dice.random() < chance else None
        conditions = [equal] if equal else []
        conditions += [self.make.condition(inner, 1)] if self.dice.random() < 0.4 else []
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _exists(self, outer: Scope, inner: Source) -> str:
        where = self._correlation(outer, inner.scope, 0.9)
        if where and self.dice.random() < 0.2:
            where += f" AND {self.make.condition([*outer, *inner.scope], 0)}"
        return f"{self.dice.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {inner.text}{where})"

    def _in(self, outer: Scope, inner: Source) -> str:
        term = self.make.any_term(outer, 0)
        found = self.make.term(inner.scope, term.kind, 0)
        where = self._correlation(outer, inner.scope, 0.3)
        return f"{term.text} {self.dice.choice(('', 'NOT '))}IN (SELECT {found.text} FROM {inner.text}{where})"

    def _in_pair(self, outer: Scope, inner: Source) -> str:
        terms = [self.make.any_term(outer, 0) for _ in range(2)]
        found = ", ".join(self.make.term(inner.scope, term.kind, 0).text for term in terms)
        word = self.dice.choice(("IN", "IN", "NOT IN"))
        return f"({terms[0].text}, {terms[1].text}) {word} (SELECT {found} FROM {inner.text}{self._correlation(outer, inner.scope, 0.2)})"

    def _compared(self, outer: Scope, inner: Source) -> str:
        scalar = self._scalar(outer, inner)
        if scalar.grade < STABLE:
            return f"{scalar.text} IS NOT NULL"
        return f"{self.make.term(outer, scalar.kind).text} {self.dice.choice(('=', '<', '>=', '<>'))} {scalar.text}"

    def _scalar(self, outer: Scope, inner: Source) -> Term:
        call = self.aggregates.call(inner.scope)
        return Term(f"(SELECT {call.text} FROM {inner.text}{self._correlation(outer, inner.scope, 0.6)})", call.kind, call.grade)

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def _scope(alias: str, columns: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(Term(f"{alias}.{column.text}", column.kind, column.grade) for column in columns)


def _unqualified(scope: Scope) -> tuple[Term, ...]:
    return tuple(Term(term.text.split(".")[1], term.kind, term.grade) for term in scope)


def _names(columns: Sequence[Term]) -> str:
    return ", ".join(column.text for column in columns)
