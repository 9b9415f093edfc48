"""Aggregates that Spark's streams lack, written with those that they have.

    count(DISTINCT ip)          →   bigint(size(collect_set(ip)))
    top_k(amount, 3)            →   slice(sort_array(collect_list(amount), false), 1, 3)
    first(page)                 →   min_by(page, struct(at, page))     (where there is an event time: by it, and not by arrival)

A `FILTER (WHERE …)` after the call stays with the aggregate inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from millstream.sql.catalyst.bridge import Bridge, Expression
from millstream.sql.catalyst.calls import Call, Rewrite, Rewrites


def stream_aggregates(time: str = "", *, distinct: bool = True) -> Rewrites:
    """The rewrites. `time` is the event time, by which `first` and `last` go. `distinct`: also of `count(DISTINCT …)`."""
    found: dict[str, Rewrite] = {"count": _count, "top_k": _top_k} if distinct else {"top_k": _top_k}
    if time:
        found |= {name: _ends("min_by", time) for name in ("first", "first_value")}
        found |= {name: _ends("max_by", time) for name in ("last", "last_value")}
    return found


def _count(bridge: Bridge, call: Call) -> Expression | None:
    if not bridge.is_distinct(call.node) or call.over is not None:
        return None
    values = call.arguments[0] if len(call.arguments) == 1 else _complete(bridge, call)
    size = bridge.call("size", [bridge.call("collect_set", [values], call.node, filtered=True)], call.node)
    return bridge.call("bigint", [size], call.node)


def count_sets(bridge: Bridge, items: Iterable[Expression]) -> list[Expression]:
    """Analysed columns of an aggregate in which `count(DISTINCT …)` counts a set: Spark analyses these calls once more."""
    found = []
    for item in items:
        calls = [(each, bridge.as_unresolved(each)) for each in bridge.aggregate_functions(item)]
        sets = [(each, _count(bridge, Call(call, "count", bridge.arguments(call), None))) for each, call in calls if call is not None]
        found.append(bridge.replaced_from_top(item, [(old, new) for old, new in sets if new is not None]))
    return found


def _complete(bridge: Bridge, call: Call) -> Expression:
    """Several values as one, which is null when one of them is: such rows do not count."""
    missing = reduce(lambda one, other: bridge.make("Or", one, other), [bridge.make("IsNull", each) for each in call.arguments])
    return bridge.call("if", [missing, bridge.expression("NULL"), bridge.call("struct", call.arguments, call.node)], call.node)


def _top_k(bridge: Bridge, call: Call) -> Expression | None:
    if len(call.arguments) not in (2, 3) or call.over is not None:
        return None
    value, count, *by = call.arguments
    fields = [bridge.expression("'by'"), *by, bridge.expression("'value'"), value]
    item = bridge.call("named_struct", fields, call.node) if by else value
    collected = bridge.call("collect_set" if bridge.is_distinct(call.node) else "collect_list", [item], call.node, filtered=True)
    ordered = bridge.call("sort_array", [collected, bridge.expression("false")], call.node)
    top = bridge.call("slice", [ordered, bridge.expression("1"), count], call.node)
    return bridge.call("transform", [top, bridge.expression("pair -> pair.value")], call.node) if by else top


def _ends(function: str, time: str) -> Rewrite:
    def rewrite(bridge: Bridge, call: Call) -> Expression | None:
        if not call.arguments or call.over is not None:
            return None
        value = call.arguments[0]
        order = bridge.call("struct", [bridge.expression(time), value], call.node)
        if bridge.ignores_nulls(call.node):
            order = bridge.call("if", [bridge.make("IsNull", value), bridge.expression("NULL"), order], call.node)
        return bridge.call(function, [value, order], call.node, filtered=True)

    return rewrite
