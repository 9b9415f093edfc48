"""Gives the plan of several DISTINCT aggregates the same order in every start.

Spark copies each row once for every set of DISTINCT arguments (Expand), and numbers the copies (`gid`). The order of the copies and of
their columns follows hashes of column ids, which differ from start to start, and state is stored by the places of columns.
"""

from __future__ import annotations

import re

from millstream.sql.catalyst.bridge import Bridge, Expression, Plan

_NUMBER = "gid"
_MADE_UP = re.compile(r"#\d+L?|(?<=_common_expr_)\d+")
"""What differs from start to start in the text of an expression."""


def with_ordered_copies(bridge: Bridge, aggregate: Plan) -> Plan:
    """The same aggregate over copies that are ordered by their texts, if it is one over numbered copies."""
    middle = aggregate.child()
    expand = middle.child() if bridge.kind(middle) == "Aggregate" else middle
    output = bridge.items(expand.output())
    names = [str(each.name()) for each in output]
    if bridge.kind(middle) != "Aggregate" or bridge.kind(expand) != "Expand" or names.count(_NUMBER) != 1:
        return aggregate
    number = names.index(_NUMBER)
    copies = sorted((bridge.items(copy) for copy in bridge.items(expand.projections())), key=lambda copy: _order(bridge, copy, number))
    columns = sorted(range(len(output)), key=lambda place: _place(bridge, copies, number, place))
    old = [copy[number] for copy in copies]
    new = sorted(old, key=lambda literal: int(literal.value()))
    numbered = [[new[index] if place == number else copy[place] for place in columns] for index, copy in enumerate(copies)]
    ordered = bridge.expand(numbered, [output[place] for place in columns], expand.child())
    ids = [int(output[place].exprId().id()) for place in columns]
    keys = sorted(bridge.items(middle.groupingExpressions()), key=lambda key: ids.index(int(key.exprId().id())))
    functions = [item for item in bridge.items(middle.aggregateExpressions()) if bridge.kind(item) != "AttributeReference"]
    below = bridge.aggregate(keys, [*keys, *functions], ordered)
    pairs = [(_is(bridge, output[number], one), _is(bridge, output[number], other)) for one, other in zip(old, new, strict=True)]
    return bridge.with_expressions(bridge.with_children(aggregate, [below]), pairs)


def _order(bridge: Bridge, copy: list[Expression], number: int) -> tuple[bool, list[str]]:
    """The place of a copy: the one for functions without DISTINCT has the number 0 and is the first."""
    filled = [_text(value) for place, value in enumerate(copy) if place != number and not _is_null(bridge, value)]
    return int(copy[number].value()) != 0, sorted(filled)


def _place(bridge: Bridge, copies: list[list[Expression]], number: int, place: int) -> tuple[int, str]:
    """The place of a column: keys of the groups, which all copies have, DISTINCT arguments by their texts, the number, and the others."""
    if place == number:
        return 2, ""
    filled = [copy for copy in copies if not _is_null(bridge, copy[place])]
    if len(filled) == len(copies) or not filled:
        return 0, ""
    plain = all(int(copy[number].value()) == 0 for copy in filled)
    return (3, "") if plain else (1, _text(filled[-1][place]))


def _is(bridge: Bridge, number: Expression, literal: Expression) -> Expression:
    return bridge.make("EqualTo", number, literal)


def _is_null(bridge: Bridge, value: Expression) -> bool:
    return bridge.kind(value) == "Literal" and value.value() is None


def _text(value: Expression) -> str:
    return _MADE_UP.sub("", str(value.toString()))
