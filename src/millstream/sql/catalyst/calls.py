"""Rewrites of function calls in what Spark has parsed.

A rewrite gets a call and returns the expression that takes its place, or None. Calls can be nested. A column of a SELECT without a name
keeps the one that it would have had: the user's text, and of a field (`f(x).tier`) its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from millstream.sql.catalyst.bridge import Bridge, Expression, Plan

_WINDOWS = {"WindowExpression", "UnresolvedWindowExpression"}
"""`f(x) OVER …`: their first child is the function."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that is not resolved yet."""

    node: Expression
    name: str
    """In lower case."""
    arguments: list[Expression]
    over: Expression | None
    """The expression `f(x) OVER …` around it."""


Rewrite = Callable[[Bridge, Call], Expression | None]
Rewrites = Mapping[str, Rewrite]
"""The name of a function, in lower case, → how its calls are rewritten"""


def rewrite_plan(bridge: Bridge, plan: Plan, rewrites: Rewrites) -> Plan:
    """A parsed plan with rewritten calls, also in its subqueries."""
    found = bridge.expressions(plan) if rewrites else ()
    pairs = [pair for expression in found for pair in _pairs(bridge, expression, rewrites)]
    return bridge.with_expressions_everywhere(plan, pairs) if pairs else plan


def rewrite_expression(bridge: Bridge, expression: Expression, rewrites: Rewrites) -> Expression:
    return bridge.replaced_from_top(expression, _pairs(bridge, expression, rewrites))


def _pairs(bridge: Bridge, node: Expression, rewrites: Rewrites, over: Expression | None = None) -> Iterator[tuple[Expression, Expression]]:
    """What is to be replaced, and by what. Outer calls are replaced first, and their arguments then."""
    if not bridge.has_calls(node):
        return
    kind, children, called = bridge.kind(node), bridge.children(node), bridge.as_call(node)
    if called is not None:
        call = Call(called, bridge.function_name(called).lower(), bridge.arguments(called), over)
        rewrite = rewrites.get(call.name)
        new = rewrite(bridge, call) if rewrite else None
        if new is not None:
            yield (over if over is not None else node), new
    around = [node if kind in _WINDOWS else None, *[None] * len(children)]
    within = [pair for child, over in zip(children, around, strict=False) for pair in _pairs(bridge, child, rewrites, over)]
    if kind == "UnresolvedAlias" and within:
        yield node, bridge.alias(children[0], _column_name(bridge, children[0]))
    yield from within


def _column_name(bridge: Bridge, item: Expression) -> str:
    text = bridge.text_of(item)
    return text.rpartition(".")[2].strip("` ") if bridge.kind(item) == "UnresolvedExtractValue" and not text.endswith("]") else text
