"""Which part of a plan may run on the rows of one epoch. Spark's analysed plan decides, by the identity of its columns.

A step that looks at one row at a time may run anywhere. Everything else (an aggregate, a join, a window function, DISTINCT, ORDER BY,
LIMIT, a subquery) needs rows that other epochs have, and its result would depend on where the epochs are cut. There are two exceptions.
The other side of a join is a table and no stream. Or the keys hold the window of a windowed aggregate below: all rows of a window leave
that aggregate in one epoch.
A window is known by its length, step and origin, so windows of different kinds, which close in different epochs, never meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from millstream.logical import plans
from millstream.logical.plans import Expression, Origin, Plan

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
"""Nodes that give the columns of their child."""
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
    """What a column carries: a window, or one of its edges."""

    window: str
    """Which kind of window: equal for windows that close together."""
    edge: Literal["window", "start", "end"] = "window"


Carriers = Mapping[str, Carrier]
"""Column → the window that it carries."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What cannot run on the rows of one epoch, and where it stands."""

    reason: str
    origin: Origin | None = None


class _Refused(Exception):  # noqa: N818 — carries a finding out of the walk, and is no error
    def __init__(self, reason: str, node: Plan | Expression) -> None:
        self.refusal = Refusal(reason, plans.origin(node))


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of the rows that a node gives."""

    stream: bool
    carriers: Mapping[int, Carrier] = field(default_factory=dict)
    pairs: Mapping[frozenset[int], Carrier] = field(default_factory=dict)
    """Two columns of a full join, of which at least one is not null."""
    closed: bool = False
    """Whether they come out of a windowed aggregate of this plan."""


def per_epoch(frame: DataFrame, inputs: Mapping[str, Carriers]) -> Refusal | None:
    """Why a frame cannot be computed from the rows of one epoch; `inputs` says which of their columns carry a window."""
    try:
        _Walk(inputs).visit(plans.analysed(frame))
    except _Refused as found:
        return found.refusal
    return None


def windowed(frame: DataFrame, window: str) -> Carriers | Refusal:
    """The columns of a streaming frame that carry the window it is grouped by; or why it is not one windowed aggregate and plain steps."""
    plan = plans.analysed(frame)
    try:
        rows = _Walk({}, window).visit(plan)
    except _Refused as found:
        return found.refusal
    columns = zip(plans.names(plan), plans.ids(plan), strict=True)
    return {name: rows.carriers[column] for name, column in columns if column in rows.carriers}


def totals(frame: DataFrame) -> list[frozenset[str]] | Refusal:
    """The columns that hold each key of a running total; or why the frame is none. Above the aggregate only columns may be computed:
    a condition, for example, would have to take rows back that no longer meet it.
    """
    plan = plans.analysed(frame)
    steps: list[Plan] = []
    while plans.kind(plan) in {"Project", "SubqueryAlias", "PipeOperator"} and not plans.input_name(plan):
        steps.append(plan)
        plan = plans.children(plan)[0]
    try:
        if plans.kind(plan) != "Aggregate":
            step = _ABOVE.get(plans.kind(plan), f"the step `{plans.kind(plan)}`")
            raise _Refused(f"{step} above running totals is not supported yet: a new total would have to take its rows back", plan)
        _Walk({}).visit(plans.children(plan)[0])
        _require_plain_keys(plan)
    except _Refused as found:
        return found.refusal
    return _held(plan, list(reversed(steps)))


def _held(aggregate: Plan, steps: list[Plan]) -> list[frozenset[str]]:
    keys = [key for key in plans.items(aggregate.groupingExpressions()) if not _grouping_id(key)]
    items = plans.items(aggregate.aggregateExpressions())
    held = [{plans.identity(item) for item in items if plans.unaliased(item).semanticEquals(key)} for key in keys]
    for step in steps:
        held = plans.projected(step, held) if plans.kind(step) == "Project" else held
    top = steps[-1] if steps else aggregate
    names = dict(zip(plans.ids(top), plans.names(top), strict=True))
    return [frozenset(names[column] for column in columns if column in names) for columns in held]


def _grouping_id(key: Expression) -> bool:
    return plans.kind(key) == "AttributeReference" and str(key.name()) == "spark_grouping_id"


def inexact(frame: DataFrame) -> Refusal | None:
    """Why a count of different values would not be exact. It counts a set, and Spark's sets take 0.0 and -0.0 inside a struct for two."""
    for expression in plans.own_expressions(plans.analysed(frame)):
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
    """The window of the streaming aggregate that this plan is; empty: the plan runs epoch by epoch."""

    def visit(self, node: Plan) -> _Rows:
        if name := plans.input_name(node):
            known = self.inputs.get(name, {})
            columns = zip(plans.names(node), plans.ids(node), strict=True)
            return _Rows(True, {column: known[name] for name, column in columns if name in known})
        for expression, plan in plans.subqueries(node):
            if self.visit(plan).stream:
                raise _Refused(_why(_WORDS[plans.kind(expression)]), expression)
        rows = [self.visit(child) for child in plans.children(node)]
        if not any(each.stream for each in rows):
            return _Rows(False)
        return self._step(node, rows)

    def _step(self, node: Plan, rows: list[_Rows]) -> _Rows:
        kind = plans.kind(node)
        if kind in PLAIN or kind in {"Generate", "LateralJoin"}:
            return rows[0]
        if kind in PYTHON:
            return _Rows(True, closed=rows[0].closed)
        if kind == "Project":
            return replace(rows[0], carriers=self._named(plans.items(node.projectList()), rows[0]), pairs={})
        if kind == "Expand":
            return replace(rows[0], carriers=self._expanded(node, rows[0]), pairs={})
        if kind == "Union":
            return self._united(node, rows)
        if kind == "Aggregate":
            return self._aggregated(node, rows[0])
        if kind == "Join":
            return self._joined(node, rows[0], rows[1])
        if kind in {"Window", "Distinct", "Deduplicate"} and not self.window:
            return self._partitioned(node, rows[0])
        raise _Refused(_why(_WORDS.get(kind, f"the step `{kind}`")), node)

    def _named(self, items: list[Expression], rows: _Rows) -> dict[int, Carrier]:
        known = self.window or rows.carriers or rows.pairs
        found = {plans.identity(item): self._carried(item, rows) for item in items} if known else {}
        return {column: carrier for column, carrier in found.items() if carrier is not None}

    def _carried(self, item: Expression, rows: _Rows) -> Carrier | None:
        """The window that an expression stands for."""
        kind = plans.kind(item)
        if kind == "AttributeReference":
            marked = Carrier(self.window) if self.window and plans.is_window(item) else None
            return rows.carriers.get(plans.identity(item), marked)
        if kind == "Alias":
            return Carrier(self.window) if self.window and plans.is_window(item) else self._carried(item.child(), rows)
        if kind == "GetStructField":
            whole = self._carried(item.child(), rows)
            return _edge(whole, item.ordinal()) if whole is not None and whole.edge == "window" else None
        if kind == "Coalesce":
            columns = [plans.identity(each) for each in plans.children(item) if plans.kind(each) == "AttributeReference"]
            return rows.pairs.get(frozenset(columns)) if len(columns) == len(plans.children(item)) else None
        return None

    def _expanded(self, node: Plan, rows: _Rows) -> dict[int, Carrier]:
        """A column carries the window when it does in every copy of the row: GROUPING SETS leave it out of some, sliding windows do not."""
        projections = [plans.items(projection) for projection in plans.items(node.projections())]
        found: dict[int, Carrier] = {}
        for index, attribute in enumerate(plans.items(node.output()) if self.window or rows.carriers else ()):
            made = Carrier(self.window) if self.window and plans.is_window(attribute) else None
            copies = {made or self._carried(each[index], rows) if plans.kind(each[index]) != "Literal" else None for each in projections}
            carrier = copies.pop()
            if carrier is not None and not copies:
                found[plans.identity(attribute)] = carrier
        return found

    def _united(self, node: Plan, rows: list[_Rows]) -> _Rows:
        if not all(each.stream for each in rows):
            raise _Refused("UNION ALL of a stream and of rows that are no stream would repeat those rows in every epoch", node)
        found: dict[int, Carrier] = {}
        columns = [plans.ids(child) for child in plans.children(node)]
        for index, column in enumerate(plans.ids(node)):
            carriers = {each.carriers.get(ids[index]) for each, ids in zip(rows, columns, strict=True)}
            carrier = carriers.pop()
            if carrier is not None and not carriers:
                found[column] = carrier
        return _Rows(True, found, closed=any(each.closed for each in rows))

    def _aggregated(self, node: Plan, rows: _Rows) -> _Rows:
        if rows.closed:
            raise _Refused(_why("an aggregate over an aggregate"), node)
        if not any(self._carried(key, rows) for key in plans.items(node.groupingExpressions())):
            raise _Refused(_missing("an aggregate", "GROUP BY") if self.window or rows.carriers else _why("an aggregate"), node)
        if self.window:
            _require_plain_keys(node)
            if Carrier(self.window) not in [self._carried(key, rows) for key in plans.items(node.groupingExpressions())]:
                raise _Refused("GROUP BY must hold the window itself; its start and end can be selected: `window.start`", node)
        return _Rows(True, self._named(plans.items(node.aggregateExpressions()), rows), closed=bool(self.window))

    def _partitioned(self, node: Plan, rows: _Rows) -> _Rows:
        kind = plans.kind(node)
        if kind == "Distinct":
            held = any(column in rows.carriers for column in plans.ids(node))
        else:
            held = any(self._carried(key, rows) for key in plans.items(node.partitionSpec() if kind == "Window" else node.keys()))
        if not held:
            clause = "PARTITION BY" if kind == "Window" else "columns"
            raise _Refused(_missing(_WORDS[kind], clause) if rows.carriers else _why(_WORDS[kind]), node)
        return rows

    def _joined(self, node: Plan, left: _Rows, right: _Rows) -> _Rows:
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

    def _same(self, one: Expression, other: Expression, left: _Rows, right: _Rows) -> bool:
        """Whether an equality compares the same window on the left and on the right."""
        sides = [(self._carried(one, left), self._carried(other, right)), (self._carried(other, left), self._carried(one, right))]
        return any(a is not None and a == b for a, b in sides)


def _require_plain_keys(aggregate: Plan) -> None:
    """Spark's state is kept by the bytes of a key, and a collation takes different bytes for equal."""
    for key in plans.items(aggregate.groupingExpressions()):
        if plans.is_collated(key):
            raise _Refused("GROUP BY with COLLATE cannot be kept as state; group by `lower(…)` or another plain value", key)


def _join(form: str, left: _Rows, right: _Rows, matched: list[tuple[Expression, Expression]]) -> _Rows:
    """The columns of an outer join's other side may be null in every epoch, and carry the window no more."""
    if form in {"INNER", "CROSS"}:
        return _Rows(True, {**left.carriers, **right.carriers})
    if form in {"LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}:
        return left
    if form == "RIGHT OUTER":
        return right
    both = [pair for pair in matched if all(plans.kind(side) == "AttributeReference" for side in pair)]
    known = {**left.carriers, **right.carriers}
    return _Rows(True, {}, {frozenset(map(plans.identity, pair)): known[plans.identity(pair[0])] for pair in both})


def _equalities(node: Plan) -> list[tuple[Expression, Expression]]:
    """The equalities that a join's condition demands."""
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
    """Sessions of different length can start together, so only their end says when they close."""
    if ordinal == 0:
        return None if window.window.startswith("session") else replace(window, edge="start")
    return replace(window, edge="end")


def _why(construct: str) -> str:
    return f"{construct} would see the rows of one epoch only, and its result would depend on where epochs are cut"


def _missing(construct: str, clause: str) -> str:
    return f"{construct} that runs epoch by epoch must have the window of a windowed aggregate in its {clause}"
