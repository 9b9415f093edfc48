"""Calls of the user's aggregate functions. Spark has no Python aggregates over streams, but it can collect a group's values, so

    my_median(x) FILTER (WHERE ok)     becomes     _scalar_of_my_median(collect_list(x) FILTER (WHERE ok))

where the registered function takes lists. Several arguments are collected as structs, since collected one by one they would lose their
nulls and with them their pairing.
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.sql.catalyst.bridge import Bridge, Expression
from millstream.sql.catalyst.calls import Call, Rewrite, Rewrites

PREFIX = "_scalar_of_"
FIELD = "_millstream_"
"""Field names of collected arguments: `_millstream_1`, `_millstream_2`, …"""


def collecting(aggregates: Iterable[str]) -> Rewrites:
    """The rewrites of calls of these functions."""
    return {name.lower(): _collecting(name) for name in aggregates}


def _collecting(name: str) -> Rewrite:
    def rewrite(bridge: Bridge, call: Call) -> Expression | None:
        if not call.arguments:
            return None  # nothing to collect: Spark says so
        distinct = bridge.is_distinct(call.node)
        values = bridge.call("collect_list", [_together(bridge, call)], call.node, filtered=True, distinct=distinct)
        if call.over is not None:
            values = bridge.with_children(call.over, [values, *bridge.children(call.over)[1:]])
        return bridge.call(f"{PREFIX}{name}", [values], call.node)

    return rewrite


def _together(bridge: Bridge, call: Call) -> Expression:
    """The arguments as one value."""
    if len(call.arguments) == 1:
        return call.arguments[0]
    names = [bridge.expression(f"'{FIELD}{number}'") for number in range(1, len(call.arguments) + 1)]
    pairs = zip(names, call.arguments, strict=True)
    return bridge.call("named_struct", [each for pair in pairs for each in pair], call.node)
