"""Random expressions of a given type over the columns in scope.

No expression can fail, and none depends on the order of rows. Sums of doubles do when they round; so every term has a grade, and what
rounds is not compared, grouped, joined or ordered by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.sql.random.values import NUMBERS, SQL_TYPES, VALUES, draw_value, literal

EXACT = 2
"""Sums do not round."""
STABLE = 1
"""The same value in every order of evaluation; sums of it may round."""
ROUNDED = 0
"""Not to be compared: the last digits depend on the order of evaluation, or SQL has no order for the type."""


@dataclass(frozen=True)
class Term:
    """An expression, or a column in scope."""

    text: str
    kind: str
    grade: int = EXACT


Scope = Sequence[Term]
COMPARED = tuple(kind for kind in SQL_TYPES if kind != "map")
TEMPLATES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "bigint": (
        ("({} + {})", "bigint bigint", EXACT),
        ("({} - {})", "bigint int", EXACT),
        ("({} * 2)", "bigint", EXACT),
        ("({} % 3L)", "bigint", EXACT),
        ("abs({})", "bigint", EXACT),
        ("({} % 5L)", "huge", EXACT),
        ("greatest({}, {})", "bigint bigint", EXACT),
        ("CAST({} AS bigint)", "int", EXACT),
        ("CAST({} AS bigint)", "boolean", EXACT),
        ("CAST(length({}) AS bigint)", "string", EXACT),
        ("try_cast({} AS bigint)", "string", EXACT),
        ("get({}, 0)", "array", EXACT),
        ("({}).x", "struct", EXACT),
    ),
    "huge": (
        ("try_add({}, {})", "huge bigint", EXACT),
        ("try_subtract({}, {})", "huge huge", EXACT),
        ("greatest({}, {})", "huge huge", EXACT),
        ("try_cast({} AS bigint)", "wide", EXACT),
    ),
    "int": (
        ("({} + {})", "int int", EXACT),
        ("least({}, {})", "int int", EXACT),
        ("size({})", "array", EXACT),
        ("length({})", "string", EXACT),
        ("day({})", "date", EXACT),
        ("datediff({}, {})", "date date", EXACT),
        ("hour({})", "timestamp", EXACT),
    ),
    "double": (
        ("({} + {})", "double double", EXACT),
        ("({} - {})", "double double", EXACT),
        ("({} * 2)", "double", EXACT),
        ("try_divide({}, {})", "bigint bigint", STABLE),
        ("try_divide({}, 3)", "double", STABLE),
        ("CAST({} AS double)", "bigint", EXACT),
        ("CAST({} AS double)", "decimal", STABLE),
        ("nanvl({}, {})", "double double", EXACT),
        ("CAST({} AS double)", "float", EXACT),
        ("CAST({} AS double)", "huge", STABLE),
        ("get({}, 0)", "doubles", EXACT),
    ),
    "float": (("greatest({}, {})", "float float", EXACT),),
    "decimal": (
        ("({} + {})", "decimal decimal", EXACT),
        ("({} * 2)", "decimal", EXACT),
        ("CAST({} AS decimal(12,2))", "int", EXACT),
        ("try_divide({}, {})", "decimal decimal", EXACT),
    ),
    "wide": (
        ("try_add({}, {})", "wide wide", EXACT),
        ("CAST({} AS decimal(38,4))", "decimal", EXACT),
        ("CAST({} AS decimal(38,4))", "huge", EXACT),
    ),
    "string": (
        ("hex({})", "binary", EXACT),
        ("CAST({} AS string)", "huge", EXACT),
        ("CAST({} AS string)", "wide", EXACT),
        ("upper({})", "string", EXACT),
        ("concat({}, {})", "string string", EXACT),
        ("substring({}, 1, 1)", "string", EXACT),
        ("CAST({} AS string)", "bigint", EXACT),
        ("CAST({} AS string)", "date", EXACT),
        ("({}).y", "struct", EXACT),
    ),
    "boolean": (),
    "binary": (("CAST({} AS binary)", "string", EXACT), ("concat({}, {})", "binary binary", EXACT)),
    "ntz": (("CAST({} AS timestamp_ntz)", "date", EXACT), ("({} + INTERVAL 1 HOUR)", "ntz", EXACT)),
    "date": (("date_add({}, 1)", "date", EXACT), ("CAST({} AS date)", "timestamp", EXACT)),
    "timestamp": (
        ("({} + INTERVAL 1 HOUR)", "timestamp", EXACT),
        ("date_trunc('DAY', {})", "timestamp", EXACT),
        ("CAST({} AS timestamp)", "date", EXACT),
    ),
    "array": (
        ("array({}, {})", "bigint bigint", EXACT),
        ("array_distinct({})", "array", EXACT),
        ("sort_array({})", "array", EXACT),
        ("transform({}, e -> e + 1L)", "array", EXACT),
    ),
    "doubles": (("array({}, {})", "double double", EXACT), ("({}).l", "deep", EXACT), ("array_distinct({})", "doubles", EXACT)),
    "structs": (("array({})", "struct", EXACT), ("sort_array({})", "structs", EXACT)),
    "deep": (("named_struct('l', {}, 's', {})", "doubles struct", EXACT),),
    "struct": (
        ("({}).s", "deep", EXACT),
        ("get({}, 0)", "structs", EXACT),
        ("named_struct('x', {}, 'y', {})", "bigint string", EXACT),
    ),
}
GENERAL = (
    ("coalesce({0}, {1})", ""),
    ("nullif({0}, {1})", ""),
    ("CASE WHEN {2} THEN {0} ELSE {1} END", "condition"),
    ("if({2}, {0}, NULL)", "condition"),
)


def stable(scope: Scope) -> list[Term]:
    """What may be compared, grouped, joined and ordered by."""
    return [term for term in scope if term.grade >= STABLE]


def _ordered(kind: str) -> list[Any]:
    """The values that Python can order, in their order."""
    if isinstance(VALUES[kind][-1], list | tuple):
        return list(VALUES[kind])
    return sorted({value for value in VALUES[kind] if not isinstance(value, float) or not math.isnan(value)})


class Expressions:
    def __init__(self, dice: Random) -> None:
        self.dice = dice

    def term(self, scope: Scope, kind: str, depth: int = 1) -> Term:
        if depth == 0 or self.dice.random() < 0.45:
            return self.leaf(scope, kind)
        if kind == "boolean":
            return Term(f"({self.condition(scope, depth - 1)})", kind)
        if self.dice.random() < 0.35:
            return self._general(scope, kind, depth - 1)
        present = {each.kind for each in stable(scope)}
        templates = [each for each in TEMPLATES[kind] if present.issuperset(each[1].split())]
        if not templates:
            return self.leaf(scope, kind)
        template, kinds, grade = self.dice.choice(templates)
        terms = [self.term(scope, each, depth - 1) for each in kinds.split()]
        return Term(template.format(*(term.text for term in terms)), kind, min(grade, *(term.grade for term in terms)))

    def any_term(self, scope: Scope, depth: int = 1, kinds: Sequence[str] = COMPARED) -> Term:
        """A term of a type that the scope has, if it has one of the wanted types."""
        present = [term.kind for term in stable(scope) if term.kind in kinds]
        return self.term(scope, self.dice.choice(present or list(kinds)), depth)

    def leaf(self, scope: Scope, kind: str) -> Term:
        columns = [term for term in stable(scope) if term.kind == kind]
        if columns and self.dice.random() < 0.93:
            return self.dice.choice(columns)
        return Term(literal(kind, draw_value(self.dice, kind, 0.04)), kind)

    def _general(self, scope: Scope, kind: str, depth: int) -> Term:
        template, needs = self.dice.choice(GENERAL)
        first = self.term(scope, kind, depth)
        second = self.leaf([each for each in scope if each != first], kind)
        condition = self.condition(scope, 0) if needs else ""
        return Term(template.format(first.text, second.text, condition), kind, min(first.grade, second.grade))

    def condition(self, scope: Scope, depth: int = 1) -> str:
        roll = self.dice.random()
        if depth > 0 and roll < 0.3:
            word = self.dice.choice(("AND", "OR", "OR"))
            return f"({self.condition(scope, depth - 1)} {word} {self.condition(scope, depth - 1)})"
        if depth > 0 and roll < 0.38:
            return f"NOT ({self.condition(scope, depth - 1)})"
        term = self.any_term(scope, depth)
        if roll < 0.5:
            return f"{term.text} IS {self.dice.choice(('', 'NOT ', 'NOT '))}NULL"
        return self.dice.choice((self._comparison, self._comparison, self._comparison, self._membership, self._special))(scope, term)

    def _comparison(self, scope: Scope, term: Term) -> str:
        others = [other for other in scope if other != term]
        other = (
            literal(term.kind, self.dice.choice(VALUES[term.kind])) if self.dice.random() < 0.4 else self.term(others, term.kind, 0).text
        )
        return f"{term.text} {self.dice.choice(('=', '<>', '<>', '<', '<=', '>', '>=', '>=', '<=>'))} {other}"

    def _membership(self, scope: Scope, term: Term) -> str:
        if self.dice.random() < 0.5:
            low, high = (
                literal(term.kind, value) for value in sorted(self.dice.choices(_ordered(term.kind), k=2), key=_ordered(term.kind).index)
            )
            return f"{term.text} BETWEEN {low} AND {high}"
        items = ", ".join(literal(term.kind, draw_value(self.dice, term.kind, 0.04)) for _ in range(self.dice.randint(1, 3)))
        return f"{term.text} {self.dice.choice(('', 'NOT '))}IN ({items})"

    def _special(self, scope: Scope, term: Term) -> str:
        match term.kind:
            case "string":
                return f"{term.text} LIKE '{self.dice.choice(('a%', '%b', '_'))}'"
            case "double":
                return f"isnan({term.text})"
            case "array":
                return f"array_contains({term.text}, 1L)"
            case "boolean":
                return term.text
        return self._comparison(scope, term)

    def equality(self, left: Scope, right: Scope) -> str | None:
        """A condition that makes a join one of keys."""
        pairs = [(a, b) for a in stable(left) for b in stable(right) if a.kind == b.kind]
        pairs += [(a, b) for a in stable(left) for b in stable(right) if {a.kind, b.kind} == {"int", "bigint"}]
        if not pairs:
            return None
        first, second = self.dice.choice(pairs)
        if self.dice.random() < 0.15:
            first = self.term(left, first.kind, 1)
        return f"{first.text} {self.dice.choice(('=', '=', '=', '=', '<=>'))} {second.text}"


class Aggregates:
    """Random aggregate functions."""

    def __init__(self, dice: Random, expressions: Expressions) -> None:
        self.dice = dice
        self.make = expressions

    def call(self, scope: Scope) -> Term:
        functions: tuple[Callable[[Scope], Term], ...] = (
            self._count,
            self._count,
            self._sum,
            self._sum,
            self._average,
            self._extreme,
            self._extreme,
            self._distinct,
            self._spread,
        )
        if any(term.kind in {"huge", "wide"} for term in stable(scope)):
            functions = (*functions, self._large_sum, self._large_sum)
        term = self.dice.choice((*functions, self._boolean, self._by, self._list, self._other))(scope)
        if self.dice.random() < 0.12 and not term.text.startswith("sort_array"):
            return Term(f"{term.text} FILTER (WHERE {self.make.condition(scope)})", term.kind, term.grade)
        return term

    def _count(self, scope: Scope) -> Term:
        return Term(
            self.dice.choice(("count(*)", f"count({self.make.any_term(scope).text})", f"count_if({self.make.condition(scope, 0)})")),
            "bigint",
        )

    def _number(self, scope: Scope) -> Term:
        return self.make.any_term(scope, kinds=NUMBERS)

    def _sum(self, scope: Scope) -> Term:
        term = self._number(scope)
        distinct = "DISTINCT " if self.dice.random() < 0.15 else ""
        kind = "bigint" if term.kind == "int" else term.kind
        return Term(f"sum({distinct}{term.text})", kind, EXACT if term.grade == EXACT else ROUNDED)

    def _large_sum(self, scope: Scope) -> Term:
        """Sums that fit in one order of their rows fit in every one: the values have one sign, or are not at the limit."""
        term = self.make.any_term(scope, kinds=("huge", "wide"))
        guard = "abs({0}) < CAST('1e30' AS decimal(38,4))" if term.kind == "wide" else self.dice.choice(("{0} < 0", "{0} > 0"))
        return Term(f"sum(CASE WHEN {guard.format(term.text)} THEN {term.text} END)", term.kind)

    def _average(self, scope: Scope) -> Term:
        term = self._number(scope)
        kind = "decimal" if term.kind == "decimal" else "double"
        grade = EXACT if kind == "decimal" else STABLE if term.grade == EXACT else ROUNDED
        return Term(f"avg({term.text})", kind, grade)

    def _extreme(self, scope: Scope) -> Term:
        term = self.make.any_term(scope)
        return Term(f"{self.dice.choice(('min', 'max'))}({term.text})", term.kind, term.grade)

    def _distinct(self, scope: Scope) -> Term:
        terms = [self.make.any_term(scope).text for _ in range(self.dice.choice((1, 1, 2)))]
        return Term(f"count(DISTINCT {', '.join(terms)})", "bigint")

    def _spread(self, scope: Scope) -> Term:
        function = self.dice.choice(("stddev", "stddev_pop", "variance", "var_pop"))
        return Term(f"{function}({self._number(scope).text})", "double", ROUNDED)

    def _boolean(self, scope: Scope) -> Term:
        return Term(f"{self.dice.choice(('bool_and', 'bool_or'))}({self.make.condition(scope)})", "boolean")

    def _by(self, scope: Scope) -> Term:
        """Rows that are equal in the order have the same value."""
        value, order = self.make.any_term(scope, 0), self.make.any_term(scope)
        return Term(f"{self.dice.choice(('max_by', 'min_by'))}({value.text}, struct({order.text}, {value.text}))", value.kind, value.grade)

    def _other(self, scope: Scope) -> Term:
        term = self.make.term(scope, "bigint").text
        return self.dice.choice((Term(f"median({term})", "double", STABLE), Term(f"bit_or({term})", "bigint")))

    def _list(self, scope: Scope) -> Term:
        inner = self.make.term(scope, "bigint").text
        return Term(f"sort_array({self.dice.choice(('collect_list', 'collect_set'))}({inner}))", "array")
