"""Decides which part of a plan may run on the rows of one epoch, by the column ids in Spark's analysed plan.

A step that processes one row at a time may run anywhere. Everything else (an aggregate, a join, a window function, DISTINCT, ORDER BY,
LIMIT, a subquery) needs rows of other epochs, and its result would depend on epoch boundaries. There are two exceptions. The other side of
a join is a table and not a stream. Or the keys contain the window of a windowed aggregate below: all rows of a window leave that aggregate
in one epoch. A window is identified by its length, step and origin, so windows of different kinds, which close in different epochs, are
never combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from millstream.sql.analysed import plans
from millstream.sql.analysed.plans import Expression, Origin, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAIN = {
    "SubqueryAlias",
    "View",
    "Filter",
    "ResolvedHint",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "EventTimeWatermark",
    "CollectMetrics",
    "PipeOperator",
}
"""Nodes with the same columns as their child."""
PYTHON = {"MapInArrow", "MapInPandas", "MapInPython", "PythonMapInArrow", "MapPartitions", "SerializeFromObject", "DeserializeToObject"}
_WORDS = {
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Window": "a window function",
    "Join": "a join of streams",
    "Sort": "ORDER BY",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Intersect": "INTERSECT",
    "Except": "EXCEPT",
    "Sample": "TABLESAMPLE",
    "UnionLoop": "a recursive query",
    "Exists": "EXISTS over a stream",
    "ListQuery": "IN (SELECT …) over a stream",
    "ScalarSubquery": "a subquery of a stream",
    "LateralSubquery": "LATERAL over a stream",
}
_ABOVE = {**_WORDS, "Filter": "a condition", "Union": "UNION ALL", "Generate": "LATERAL VIEW", "Aggregate": "an aggregate"}
_KEEPS_LEFT = {"INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}
_KEEPS_RIGHT = {"INNER", "CROSS", "RIGHT OUTER"}


@dataclass(frozen=True, slots=True)
class Carrier:
    """The window of a column, or one of its edges."""

    window: str
    """The kind of window: equal for windows that close together."""
    edge: Literal["window", "start", "end"] = "window"


Carriers = Mapping[str, Carrier]
"""Column → its window."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What cannot run on the rows of one epoch, and its position."""

    reason: str
    origin: Origin | None = None


class _Refused(Exception):  # noqa: N818 — carries a finding out of the walk, and is no error
    def __init__(self, reason: str, node: Plan | Expression) -> None:
        self.refusal = Refusal(reason, plans.origin(node))


@dataclass(frozen=True, slots=True)
class EpochRows:
    """Facts about the rows of a node in an epoch."""

    stream: bool
    carriers: Mapping[int, Carrier] = field(default_factory=dict)
    pairs: Mapping[frozenset[int], Carrier] = field(default_factory=dict)
    """Two columns of a full join, of which at least one is not null."""
    closed: bool = False
    """Whether they come from a windowed aggregate of this plan."""


def per_epoch(frame: DataFrame, inputs: Mapping[str, Carriers]) -> Refusal | None:
    """Why a frame cannot be computed from the rows of one epoch; `inputs` gives the window columns of the inputs."""
    try:
        _Walk(inputs).visit(plans.analysed_plan(frame))
    except _Refused as found:
        return found.refusal
    return None


def by_window(step: Plan, inputs: list[EpochRows]) -> EpochRows | None:
    """The rows that a step computes from its inputs' rows in an epoch; None if it needs rows of other epochs."""
    try:
        return _Walk({}).visit_over(step, inputs)
    except _Refused:
        return None


def window_columns(frame: DataFrame, window: str) -> Carriers | Refusal:
    """The columns of a streaming frame that contain its group's window; or why it is not one windowed aggregate with plain steps."""
    plan = plans.analysed_plan(frame)
    try:
        rows = _Walk({}, window).visit(plan)
    except _Refused as found:
        return found.refusal
    columns = zip(plans.names(plan), plans.ids(plan), strict=True)
    return {name: rows.carriers[column] for name, column in columns if column in rows.carriers}


def totals(frame: DataFrame) -> list[frozenset[str]] | Refusal:
    """The columns that contain each key of a running total; or why the frame is not one. Only columns may be computed above the
    aggregate: a condition, for example, would have to retract rows that no longer match.
    """
    plan = plans.analysed_plan(frame)
    steps: list[Plan] = []
    while plans.kind(plan) in {"Project", "SubqueryAlias", "PipeOperator"} and not plans.input_name(plan):
        steps.append(plan)
        plan = plans.children(plan)[0]
    try:
        if plans.kind(plan) != "Aggregate":
            step = _ABOVE.get(plans.kind(plan), f"the step `{plans.kind(plan)}`")
            raise _Refused(f"{step} above running totals is not supported yet: a new total would have to retract its rows", plan)
        _Walk({}).visit(plans.children(plan)[0])
        _require_plain_keys(plan)
    except _Refused as found:
        return found.refusal
    return _total_keys(plan, list(reversed(steps)))


def _total_keys(aggregate: Plan, steps: list[Plan]) -> list[frozenset[str]]:
    keys = [key for key in plans.items(aggregate.groupingExpressions()) if not _grouping_id(key)]
    items = plans.items(aggregate.aggregateExpressions())
    held = [{plans.expr_id(item) for item in items if plans.without_alias(item).semanticEquals(key)} for key in keys]
    for step in steps:
        held = plans.project(step, held) if plans.kind(step) == "Project" else held
    top = steps[-1] if steps else aggregate
    names = dict(zip(plans.ids(top), plans.names(top), strict=True))
    return [frozenset(names[column] for column in columns if column in names) for columns in held]


def _grouping_id(key: Expression) -> bool:
    return plans.kind(key) == "AttributeReference" and str(key.name()) == "spark_grouping_id"


def inexact(frame: DataFrame) -> Refusal | None:
    """Why a count of distinct values would not be exact. It counts a set, and Spark's sets treat 0.0 and -0.0 inside a struct as
    different.
    """
    for expression in plans.own_expressions(plans.analysed_plan(frame)):
        if plans.kind(expression) == "Size" and plans.kind(inner := plans.children(expression)[0]) == "AggregateExpression":
            function = inner.aggregateFunction()
            if plans.kind(function) == "CollectSet" and plans.has_nested_floats(plans.children(function)[0]):
                reason = "count(DISTINCT …) of several columns, structs or arrays would count 0.0 and -0.0 as two values"
                return Refusal(f"{reason}; cast the numbers to DECIMAL", plans.origin(expression))
    return None


@dataclass(frozen=True, slots=True)
class _Walk:
    inputs: Mapping[str, Carriers]
    window: str = ""
    """The window of the streaming aggregate in this plan; empty: the plan runs epoch by epoch."""

    def visit(self, node: Plan) -> EpochRows:
        if name := plans.input_name(node):
            known = self.inputs.get(name, {})
            columns = zip(plans.names(node), plans.ids(node), strict=True)
            return EpochRows(True, {column: known[name] for name, column in columns if name in known})
        for expression, plan in plans.subqueries(node):
            if self.visit(plan).stream:
                raise _Refused(_why(_WORDS[plans.kind(expression)]), expression)
        rows = [self.visit(child) for child in plans.children(node)]
        if not any(each.stream for each in rows):
            return EpochRows(False)
        return self.visit_over(node, rows)

    def visit_over(self, node: Plan, rows: list[EpochRows]) -> EpochRows:
        """The rows of a node whose inputs are known."""
        kind = plans.kind(node)
        if kind in PLAIN or kind in {"Generate", "LateralJoin"}:
            return rows[0]
        if kind in PYTHON:
            return EpochRows(True, closed=rows[0].closed)
        if kind == "Project":
            return replace(rows[0], carriers=self._named_carriers(plans.items(node.projectList()), rows[0]), pairs={})
        if kind == "Expand":
            return replace(rows[0], carriers=self._expand(node, rows[0]), pairs={})
        if kind == "Union":
            return self._union(node, rows)
        if kind == "Aggregate":
            return self._aggregate(node, rows[0])
        if kind == "Join":
            return self._join_streams(node, rows[0], rows[1])
        if kind in {"Window", "Distinct", "Deduplicate"} and not self.window:
            return self._partition(node, rows[0])
        raise _Refused(_why(_WORDS.get(kind, f"the step `{kind}`")), node)

    def _named_carriers(self, items: list[Expression], rows: EpochRows) -> dict[int, Carrier]:
        known = self.window or rows.carriers or rows.pairs
        found = {plans.expr_id(item): self._carrier_of(item, rows) for item in items} if known else {}
        return {column: carrier for column, carrier in found.items() if carrier is not None}

    def _carrier_of(self, item: Expression, rows: EpochRows) -> Carrier | None:
        """The window that an expression contains."""
        kind = plans.kind(item)
        if kind == "AttributeReference":
            marked = Carrier(self.window) if self.window and plans.is_window(item) else None
            return rows.carriers.get(plans.expr_id(item), marked)
        if kind == "Alias":
            return Carrier(self.window) if self.window and plans.is_window(item) else self._carrier_of(item.child(), rows)
        if kind == "GetStructField":
            whole = self._carrier_of(item.child(), rows)
            return _edge(whole, item.ordinal()) if whole is not None and whole.edge == "window" else None
        if kind == "Coalesce":
            columns = [plans.expr_id(each) for each in plans.children(item) if plans.kind(each) == "AttributeReference"]
            return rows.pairs.get(frozenset(columns)) if len(columns) == len(plans.children(item)) else None
        return None

    def _expand(self, node: Plan, rows: EpochRows) -> dict[int, Carrier]:
        """A column has the window if it does in every copy of the row: GROUPING SETS remove it from some, sliding windows do not."""
        projections = [plans.items(projection) for projection in plans.items(node.projections())]
        found: dict[int, Carrier] = {}
        for index, attribute in enumerate(plans.items(node.output()) if self.window or rows.carriers else ()):
            made = Carrier(self.window) if self.window and plans.is_window(attribute) else None
            copies = {made or self._carrier_of(each[index], rows) if plans.kind(each[index]) != "Literal" else None for each in projections}
            carrier = copies.pop()
            if carrier is not None and not copies:
                found[plans.expr_id(attribute)] = carrier
        return found

    def _union(self, node: Plan, rows: list[EpochRows]) -> EpochRows:
        if not all(each.stream for each in rows):
            raise _Refused("UNION ALL of a stream and of fixed rows would repeat those rows in every epoch", node)
        found: dict[int, Carrier] = {}
        columns = [plans.ids(child) for child in plans.children(node)]
        for index, column in enumerate(plans.ids(node)):
            carriers = {each.carriers.get(ids[index]) for each, ids in zip(rows, columns, strict=True)}
            carrier = carriers.pop()
            if carrier is not None and not carriers:
                found[column] = carrier
        return EpochRows(True, found, closed=any(each.closed for each in rows))

    def _aggregate(self, node: Plan, rows: EpochRows) -> EpochRows:
        if rows.closed:
            raise _Refused(_why("an aggregate over an aggregate"), node)
        keys = plans.items(node.groupingExpressions())
        if not any(self._carrier_of(key, rows) for key in keys):
            raise _Refused(_missing_window("an aggregate", "GROUP BY") if self.window or rows.carriers else _why("an aggregate"), node)
        if not self.window and any(plans.kind(key) == "AttributeReference" and plans.is_session(key) for key in keys):
            raise _Refused("GROUP BY a session merges sessions that overlap, which close at different times; group by its end", node)
        if self.window:
            _require_plain_keys(node)
            if Carrier(self.window) not in [self._carrier_of(key, rows) for key in keys]:
                raise _Refused("GROUP BY must hold the window itself; its start and end can be selected: `window.start`", node)
        return EpochRows(True, self._named_carriers(plans.items(node.aggregateExpressions()), rows), closed=bool(self.window))

    def _partition(self, node: Plan, rows: EpochRows) -> EpochRows:
        kind = plans.kind(node)
        if kind == "Distinct":
            held = any(column in rows.carriers for column in plans.ids(node))
        else:
            held = any(self._carrier_of(key, rows) for key in plans.items(node.partitionSpec() if kind == "Window" else node.keys()))
        if not held:
            clause = "PARTITION BY" if kind == "Window" else "columns"
            raise _Refused(_missing_window(_WORDS[kind], clause) if rows.carriers else _why(_WORDS[kind]), node)
        return rows

    def _join_streams(self, node: Plan, left: EpochRows, right: EpochRows) -> EpochRows:
        form = str(node.joinType().sql())
        if not right.stream and form in _KEEPS_LEFT:
            return left
        if not left.stream and form in _KEEPS_RIGHT:
            return right
        pairs = _equalities(node) if left.stream and right.stream and not self.window else []
        matched = [(a, b) for a, b in pairs if self._same(a, b, left, right)]
        if not matched:
            reason = (
                "a join of streams must compare the same window of both sides" if left.carriers or right.carriers else _why(_WORDS["Join"])
            )
            raise _Refused(reason, node)
        return _join(form, left, right, matched)

    def _same(self, one: Expression, other: Expression, left: EpochRows, right: EpochRows) -> bool:
        """Whether an equality compares the same window on the left and on the right."""
        sides = [
            (self._carrier_of(one, left), self._carrier_of(other, right)),
            (self._carrier_of(other, left), self._carrier_of(one, right)),
        ]
        return any(a is not None and a == b for a, b in sides)


def _require_plain_keys(aggregate: Plan) -> None:
    """Spark's state uses the bytes of a key, and a collation treats different bytes as equal. Of a map, the code that Spark 4.1 generates
    for a key turns nulls into 0.
    """
    for key in plans.items(aggregate.groupingExpressions()):
        if plans.is_collated(key):
            raise _Refused("GROUP BY with COLLATE cannot be kept as state; group by `lower(…)` or another plain value", key)
        if plans.has_maps(key):
            raise _Refused("GROUP BY a map cannot be kept as state; group by its sorted `map_entries(…)`", key)


def _join(form: str, left: EpochRows, right: EpochRows, matched: list[tuple[Expression, Expression]]) -> EpochRows:
    """The columns of an outer join's other side may be null in every epoch, and no longer contain the window."""
    if form in {"INNER", "CROSS"}:
        return EpochRows(True, {**left.carriers, **right.carriers})
    if form in {"LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}:
        return left
    if form == "RIGHT OUTER":
        return right
    both = [pair for pair in matched if all(plans.kind(side) == "AttributeReference" for side in pair)]
    known = {**left.carriers, **right.carriers}
    return EpochRows(True, {}, {frozenset(map(plans.expr_id, pair)): known[plans.expr_id(pair[0])] for pair in both})


def _equalities(node: Plan) -> list[tuple[Expression, Expression]]:
    """The equalities in a join's condition."""
    waiting = [node.condition().get()] if node.condition().isDefined() else []
    found: list[tuple[Expression, Expression]] = []
    while waiting:
        expression = waiting.pop()
        if plans.kind(expression) == "And":
            waiting += plans.children(expression)
        elif plans.kind(expression) in {"EqualTo", "EqualNullSafe"}:
            one, other = plans.children(expression)
            found.append((one, other))
    return found


def _edge(window: Carrier, ordinal: int) -> Carrier | None:
    """Sessions of different length can start together, so only their end identifies when they close."""
    if ordinal == 0:
        return None if window.window.startswith("session") else replace(window, edge="start")
    return replace(window, edge="end")


def _why(construct: str) -> str:
    return f"{construct} would see only the rows of one epoch, and its result would depend on epoch boundaries"


def _missing_window(construct: str, clause: str) -> str:
    return f"{construct} that runs epoch by epoch must have the window of a windowed aggregate in its {clause}"
