"""Dynamic tables in a parsed plan: calls on them and joins with them become functions over whole Arrow batches.

    dynamic_table_check('watched', o.user_id)         becomes     <function>(o.user_id)
    LEFT JOIN watched w ON o.user_id = w.user_id      becomes     LATERAL VIEW OUTER inline(<function>(o.user_id)) w AS user_id, tier

A join stays where it is among the other relations. What is no lookup that can be made stays as it was: a check has refused it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from millstream.plan.expressions import quote_column
from millstream.plan.lookup_tables import LookupTable
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan
from millstream.sql.catalyst.calls import Call, Rewrite, rewrite_plan

Naming = Callable[[str, str], str]
"""(verb, table) → the function to call"""
_VERBS = {"dynamic_table_check": "check", "dynamic_table_get": "get"}
_ROWS = "rows"
_OUTER = {"INNER": False, "LEFT OUTER": True}
_LEFT, _KEY = "_millstream_left", "_millstream_key"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A parsed plan without dynamic tables."""

    plan: Plan
    functions: frozenset[tuple[str, str]]
    """(verb, table) of the functions that it calls."""


def look_up(bridge: Bridge, plan: Plan, tables: Mapping[str, LookupTable], naming: Naming) -> LookedUp:
    """Replace calls on dynamic tables and joins with them."""
    if not tables:
        return LookedUp(plan, frozenset())
    used: set[tuple[str, str]] = set()

    def name(verb: str, table: str) -> str:
        used.add((verb, table))
        return naming(verb, table)

    joins = [(join, view) for join in bridge.joins(plan) for view in _lateral_view(bridge, join, tables, name)]
    joined = bridge.replaced_from_top_everywhere(plan, joins)
    calls = rewrite_plan(bridge, joined, {function: _calling(verb, tables, name) for function, verb in _VERBS.items()})
    return LookedUp(calls, frozenset(used))


def _calling(verb: str, tables: Mapping[str, LookupTable], naming: Naming) -> Rewrite:
    def rewrite(bridge: Bridge, call: Call) -> Expression | None:
        table = bridge.text_value(call.arguments[0]) if len(call.arguments) == 2 else None
        return bridge.call(naming(verb, table), call.arguments[1:], call.node) if table in tables and table is not None else None

    return rewrite


def _lateral_view(bridge: Bridge, join: Plan, tables: Mapping[str, LookupTable], naming: Naming) -> Iterator[Plan]:
    """The lateral view that a join with a dynamic table becomes, if it is one."""
    left, right = bridge.children(join)
    name, alias = bridge.table_name(right)
    form, table = bridge.join_form(join), tables.get(name)
    key = _key(bridge, join, table, alias) if table is not None and form in _OUTER else None
    if table is None or key is None:
        return
    columns = ", ".join(map(quote_column, table.schema.names))
    view = f"{'OUTER ' if _OUTER[form] else ''}inline({naming(_ROWS, name)}({_KEY})) {quote_column(alias)} AS {columns}"
    (generate,) = bridge.children(bridge.parse(f"SELECT * FROM {_LEFT} LATERAL VIEW {view}"))
    over = bridge.with_expressions_everywhere(generate, [(bridge.expression(_KEY), key)])
    yield bridge.with_children(over, [left])


def _key(bridge: Bridge, join: Plan, table: LookupTable, alias: str) -> Expression | None:
    """What is looked up: the other side of the only equality, with the table's key."""
    sides = bridge.equality(join)
    wanted = [alias.lower(), table.key.lower()]
    for mine, other in (sides, sides[::-1]) if sides else ():
        if [part.lower() for part in bridge.attribute_parts(mine)] == wanted:
            return other
    return None
