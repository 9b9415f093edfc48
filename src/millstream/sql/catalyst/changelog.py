"""SQL over a changelog, in Spark's parsed plan: what happened to a row stays with it, and a condition means what it means for a table.
The context of a traced record travels in the same way.

Each SELECT that reads a changelog gets the columns that travel by themselves, where it does not name them; `UNION ALL` with plain rows
makes those inserts. `WHERE c` lets deletes and updates through as well, and an update for which `c` is not true leaves as a delete. A
SELECT that names `_op` is the user's own business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from millstream.plan.changelog import DELETE, INSERT, OPS, SEQUENCE, UPDATE, op_of
from millstream.plan.expressions import quote_column
from millstream.plan.tracing import TRACED
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan

Carried = tuple[str, ...]
_CONDITION = "_millstream_condition"
_PLAIN = {SEQUENCE: "CAST(NULL AS BIGINT)", TRACED: "CAST(NULL AS STRING)"} | dict.fromkeys(OPS, f"'{INSERT}'")
_THROUGH = {
    "SubqueryAlias",
    "CTERelationDef",
    "Filter",
    "Generate",
    "LateralJoin",
    "Sort",
    "GlobalLimit",
    "LocalLimit",
    "Offset",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "UnresolvedHint",
    "PipeOperator",
    "WithWindowDefinition",
}
"""Nodes with the columns of their child, and others beside them."""
_WHOLE = {"Distinct", "Intersect", "Except", "UnresolvedSubqueryColumnAliases"}
"""Nodes to which all columns of a child matter: it gets no more."""
_ENDS = {*_WHOLE, "Aggregate", "UnresolvedHaving"}
"""Nodes whose rows are no rows of a changelog any more, or whose columns have other names."""


def passing(condition: str, op: str) -> str:
    """A condition on a changelog: what is to be kept, if only to say that it goes."""
    return f"(({condition}) OR {op} IN ('{UPDATE}', '{DELETE}'))"


def outcome(condition: str, op: str) -> str:
    """What has happened to the row, seen from behind the condition."""
    return f"CASE WHEN {op} = '{UPDATE}' AND NOT coalesce(({condition}), false) THEN '{DELETE}' ELSE {op} END"


@dataclass(frozen=True, slots=True)
class Carrying:
    """A parsed plan with the columns that its inputs carry."""

    plan: Plan
    understood: bool = True
    """Whether every step between a changelog and the result is known here."""


def carry(bridge: Bridge, plan: Plan, inputs: Mapping[str, Carried], *, whole_rows: bool = False) -> Carrying:
    """Let the columns of changelogs travel through a query; `inputs` are the tables' columns that do. `whole_rows`: changes add and remove
    whole rows, so that a condition means for each of them what it means for a row.
    """
    if not any(inputs.values()):
        return Carrying(plan)
    carrier = _Carrier(bridge, plan, inputs, whole_rows)
    return Carrying(carrier.rewrite(plan, carrier.source(plan).columns), not carrier.unknown)


@dataclass(frozen=True, slots=True)
class _Source:
    """What a node carries, and the qualifier of its columns."""

    columns: Carried = ()
    qualifier: tuple[str, ...] = ()

    def text(self, column: str) -> str:
        return ".".join(map(quote_column, (*self.qualifier, column)))


class _Carrier:
    def __init__(self, bridge: Bridge, plan: Plan, inputs: Mapping[str, Carried], whole_rows: bool) -> None:
        self._bridge, self._plan, self._inputs, self._whole_rows = bridge, plan, inputs, whole_rows
        self.unknown = False
        self._entered: set[int] = set()

    @cached_property
    def _definitions(self) -> dict[int, Plan]:
        return self._bridge.definitions(self._plan)

    def source(self, node: Plan) -> _Source:
        kind, children = self._bridge.kind(node), self._bridge.children(node)
        if name := self._bridge.table_name(node)[0] if kind == "UnresolvedRelation" else "":
            return _Source(self._inputs.get(name, ()), tuple(self._bridge.name_parts(node)))
        if kind == "SubqueryAlias":
            return _Source(self.source(children[0]).columns, (self._bridge.alias_name(node),))
        if kind == "CTERelationRef":
            return self._defined(self._bridge.definition_id(node))
        if kind == "Project":
            combines = any(self._bridge.combines_rows(item) for item in self._bridge.items(node.projectList()))
            return _Source() if combines else _Source(self.source(children[0]).columns)
        if kind == "WithCTE":
            return self.source(children[-1])
        found = [self.source(child) for child in children]
        if kind == "Union":
            both = {name for each in found for name in each.columns}
            return _Source(tuple(name for name in (*OPS, SEQUENCE, TRACED) if name in both))
        carrying = next((each for each in found if each.columns), _Source())
        self.unknown = self.unknown or bool(carrying.columns and kind not in {*_THROUGH, *_ENDS, "Join"})
        return carrying if kind in {*_THROUGH, "Join"} else _Source()

    def _defined(self, number: int) -> _Source:
        """What a definition carries; one that refers to itself, nothing."""
        if number in self._entered:
            self.unknown = True
            return _Source()
        self._entered.add(number)
        try:
            return _Source(self.source(self._definitions[number]).columns)
        finally:
            self._entered.discard(number)

    def rewrite(self, node: Plan, wanted: Carried, combined: bool = False) -> Plan:
        """A node that gives the wanted columns; `combined`: with others by position, so that they come last."""
        kind, children = self._bridge.kind(node), self._bridge.children(node)
        if kind == "Project":
            return self._select(node, self._bridge.items(node.projectList()), children[0], wanted, combined)
        if kind == "Filter" and op_of(wanted):
            return self._select(node, [self._bridge.star()], node, wanted, combined)
        if kind == "Union":
            return self._bridge.with_children(node, [self.rewrite(child, wanted, True) for child in children])
        if kind == "WithCTE":
            definitions = [self.rewrite(child, self.source(child).columns) for child in children[:-1]]
            return self._bridge.with_children(node, [*definitions, self.rewrite(children[-1], wanted, combined)])
        if kind in _THROUGH:
            return self._bridge.with_children(node, [self.rewrite(children[0], wanted, combined)])
        if combined and wanted:
            return self._select(node, [self._bridge.star()], node, wanted, combined)
        return self._inside(node)

    def _inside(self, node: Plan) -> Plan:
        """A node that stays, over children that carry what they have."""
        whole, children = self._bridge.kind(node) in _WHOLE, self._bridge.children(node)
        below = [self.rewrite(child, ()) if whole else self._below(child) for child in children]
        return self._bridge.with_children(node, below) if below else node

    def _below(self, node: Plan) -> Plan:
        """What an aggregate or a join reads. The condition of an aggregate is the user's own business: its rows are no changes any more."""
        if self._bridge.kind(node) == "Filter":
            return self._bridge.with_children(node, [self._below(child) for child in self._bridge.children(node)])
        return self.rewrite(node, self.source(node).columns)

    def _select(self, node: Plan, items: list[Expression], child: Plan, wanted: Carried, combined: bool) -> Plan:
        """A SELECT of items: over a child, or over a condition on one."""
        where = child.condition() if self._bridge.kind(child) == "Filter" else None
        below = self._bridge.children(child)[0] if where is not None else child
        source, over = self.source(below), self._over(below, node)
        own = [*items, where] if where is not None else items
        applies = op_of(source.columns) and not self._whole_rows and not any(self._bridge.names_column(each, OPS) for each in own)
        condition = where if applies else None
        missing = [name for name in wanted if name not in {self._bridge.item_name(item) for item in items}]
        stars = [item for item in items if self._bridge.is_star_of(item, source.qualifier)]
        if not missing or (stars and condition is None and not combined):
            same = self._filtered(where, over)
            return self._bridge.with_children(node, [same]) if self._bridge.kind(node) == "Project" else same
        hidden = [name for name in missing if name in source.columns]
        shown = [self._bridge.star_except(item, hidden) if hidden and item in stars else item for item in items]
        values = [self._bridge.alias(self._value(name, source, condition), name) for name in missing]
        kept = self._filled(passing(_CONDITION, source.text(op_of(source.columns))), condition) if condition is not None else where
        return self._bridge.project([*shown, *values], self._filtered(kept, over))

    def _over(self, below: Plan, node: Plan) -> Plan:
        """What a SELECT reads, with what that carries; `node` itself stays if it is what is selected from."""
        return self._inside(below) if below is node else self.rewrite(below, self.source(below).columns)

    def _filtered(self, condition: Expression | None, plan: Plan) -> Plan:
        return self._bridge.filter(condition, plan) if condition is not None else plan

    def _value(self, name: str, source: _Source, condition: Expression | None) -> Expression:
        if name not in source.columns:
            return self._bridge.expression(_PLAIN[name])
        column = source.text(name)
        if condition is None or name in (SEQUENCE, TRACED):
            return self._bridge.expression(column)
        return self._filled(outcome(_CONDITION, column), condition)

    def _filled(self, text: str, condition: Expression) -> Expression:
        """An expression with the condition in its place."""
        return self._bridge.replaced(self._bridge.expression(text), [(self._bridge.expression(_CONDITION), condition)])


def lost(carrying: Carrying, inputs: Mapping[str, Carried], output: Iterable[str]) -> str:
    """What is wrong with the result of a query over a changelog, which does not name `_op`; empty when it is a changelog itself."""
    if not any(op_of(carried) for carried in inputs.values()):
        return ""
    if not carrying.understood:
        return "it is not understood here what the query does to a changelog"
    return "" if op_of(output) else "the query leaves out what happened to the rows of a changelog"
