"""Assigns an operator to every step of a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.by_window import ByWindow
from millstream.engine.incremental.operators.inputs import FixedRows, Input, NativePart, RecentRows, Table
from millstream.engine.incremental.operators.joins import InnerJoin, KeyedJoin
from millstream.engine.incremental.operators.keyed import Keyed
from millstream.engine.incremental.operators.linear import Linear, Shared, UnionAll
from millstream.engine.incremental.operators.sums import Sums, can_add_up
from millstream.engine.incremental.relations import Refused, Step, is_unstorable
from millstream.engine.incremental.weights import column_names
from millstream.sql.analysed.gate import EpochRows, by_window
from millstream.sql.catalyst.bridge import Bridge, Expression

_LINEAR = {
    "Project",
    "Filter",
    "Expand",
    "Generate",
    "BatchEvalPython",
    "ArrowEvalPython",
    "SubqueryAlias",
    "Sort",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
}
_FIXED = {"LocalRelation", "OneRowRelation", "Range", "LogicalRDD"}
_LIMITS = {"GlobalLimit", "LocalLimit", "Offset", "Tail"}
_BY_KEY = {"Aggregate", "Join", "Window"}
_SHARED = {"Aggregate", "Join", "Window", "GlobalLimit"}
_WORDS = {
    "UnionLoop": "a recursive query",
    "UnionLoopRef": "a recursive query",
    "Sample": "TABLESAMPLE",
    "MapInArrow": "a Python transform",
    "MapInPandas": "a Python transform",
}


class Assignment:
    """The operators of a query, inputs first."""

    def __init__(self, bridge: Bridge, feeds: Mapping[str, Feed]) -> None:
        self._bridge, self._feeds = bridge, feeds
        self.operators: list[Operator] = []

    def assign(self, step: Step) -> Operator:
        """The operator of a whole query; those below it come before it in `operators`."""
        self._require_storable(step)
        return self._assign(step)

    def _assign(self, step: Step) -> Operator:
        operator = self._shared(step) or self._new(step)
        operator.whole_windows = self._whole_windows(operator)
        operator.number = len(self.operators)
        self.operators.append(operator)
        return operator

    def _whole_windows(self, operator: Operator) -> EpochRows | None:
        """What is known of an operator's rows, if it adds no rows of other epochs to closed windows."""
        step = operator.step
        if step.input:
            windows = self._feeds[step.input].windows
            names = column_names(len(step.columns))
            carriers = {column.id: windows[name] for name, column in zip(names, step.columns, strict=True) if name in windows}
            return EpochRows(True, carriers) if windows else None
        if isinstance(operator, Shared) or not isinstance(operator, ByWindow | Linear | UnionAll):
            return None
        return self._over_windows(step, operator.inputs)

    def _over_windows(self, step: Step, inputs: list[Operator]) -> EpochRows | None:
        """The rows of a step over closed windows; None if it needs others."""
        known = [each.whole_windows for each in inputs if each.whole_windows is not None]
        return by_window(step.plan, known) if inputs and len(known) == len(inputs) else None

    def _shared(self, step: Step) -> Operator | None:
        """The operator of an equal step: a common table expression that is used twice has one state."""
        if step.kind not in _SHARED and not (step.input and self._feeds[step.input].keeps_rows):
            return None
        for operator in self.operators:
            same = operator.step.kind == step.kind and len(operator.step.columns) == len(step.columns)
            if same and not isinstance(operator, Shared) and step.plan.sameResult(operator.step.plan):
                return Shared(step, operator.append_only, [operator])
        return None

    def _new(self, step: Step) -> Operator:
        self._require_deterministic(step)
        if step.input:
            return self._input(step, self._feeds[step.input])
        if step.kind in _FIXED:
            return FixedRows(step, True)
        if step.kind in _LIMITS:
            return self._limit(step)
        if step.kind in _WORDS or (len(step.children) > 2 and step.kind != "Union"):
            raise Refused(f"{_WORDS.get(step.kind, step.kind)} cannot be kept up to date", step.plan)
        inputs = [self._assign(child) for child in step.children]
        append_only = all(each.append_only for each in inputs)
        if step.kind in _BY_KEY and self._over_windows(step, inputs) is not None:
            return ByWindow(step, append_only, inputs)
        if step.kind in {"Join", "Window"} or (step.kind == "Aggregate" and not can_add_up(self._bridge, step, append_only)):
            for child in step.children:
                self._require_storable(child)
        if step.kind in _LINEAR:
            return Linear(step, append_only, inputs)
        if step.kind == "Union":
            return UnionAll(step, append_only, inputs)
        if step.kind == "Aggregate":
            return self._aggregate(step, inputs)
        if step.kind == "Join":
            return self._join(step, inputs, append_only)
        if step.kind == "Window":
            self._require_order(step)
            self._require_hashable(self._bridge.items(step.plan.partitionSpec()), step)
            return Keyed(step, False, inputs, keys=self._bridge.items(step.plan.partitionSpec()))
        raise Refused(f"the step `{step.kind}` cannot be kept up to date", step.plan)

    def _input(self, step: Step, feed: Feed) -> Operator:
        if feed.is_changelog:
            return Table(step, False, feed=feed)
        if feed.native:
            return NativePart(step, True, feed=feed)
        return RecentRows(step, False, feed=feed) if feed.ttl_ms is not None else Input(step, feed.append_only, feed=feed)

    def _require_storable(self, step: Step) -> None:
        """Values are kept as Parquet, and compared."""
        for column in step.columns:
            kind = str(column.attribute.dataType().catalogString()).lower()
            if is_unstorable(kind):
                raise Refused(f"`{column.name}` has the type `{kind}`, which cannot be kept as state; cast it to another type", step.plan)
            twice = _repeated_field(json.loads(column.attribute.dataType().json())) if "struct<" in kind else None
            if twice is not None:
                reason = f"has two fields called `{twice}`" if twice else "has no fields"
                raise Refused(f"the struct `{column.name}` {reason}, so it cannot be kept as state; use named_struct", step.plan)

    def _require_deterministic(self, step: Step) -> None:
        for expression in self._bridge.items(step.plan.expressions()):
            if not expression.deterministic():
                worst = self._varying(expression)
                reason = f"`{worst.sql()}` has another value each time, so a row that was returned could not be removed again"
                raise Refused(reason, worst)

    def _require_order(self, step: Step) -> None:
        """Spark turns LIMIT in a LATERAL subquery into `row_number()`, and loses the order unless it is that of selected columns."""
        functions = [self._bridge.unnamed(item).windowFunction() for item in self._bridge.items(step.plan.windowExpressions())]
        if step.plan.orderSpec().isEmpty() and any(self._bridge.kind(each) == "RowNumber" for each in functions):
            raise Refused("LIMIT in LATERAL needs an ORDER BY of columns that it selects", step.plan)

    def _varying(self, expression: Expression) -> Expression:
        """The innermost expression that is not deterministic."""
        inner = next((child for child in self._bridge.children(expression) if not child.deterministic()), None)
        return expression if inner is None else self._varying(inner)

    def _limit(self, step: Step) -> Operator:
        below = step
        while below.kind in _LIMITS or below.kind == "Sort" or _projects_sorted(below):
            below = below.children[0]
        self._require_storable(below)
        return Keyed(step, False, [self._assign(below)])

    def _require_hashable(self, keys: Iterable[Expression], step: Step) -> None:
        if any("map<" in str(key.dataType().catalogString()) for key in keys):
            raise Refused("a map in GROUP BY, DISTINCT, PARTITION BY or a join's condition cannot be a key", step.plan)

    def _aggregate(self, step: Step, inputs: list[Operator]) -> Operator:
        keys = self._bridge.items(step.plan.groupingExpressions())
        self._require_hashable(keys, step)
        if any(map(self._is_session, keys)):
            raise Refused("a session window over rows that change cannot be kept up to date", step.plan)
        if can_add_up(self._bridge, step, inputs[0].append_only):
            return Sums(step, False, inputs).prepare(self._bridge)
        return Keyed(step, False, inputs, keys=keys)

    def _is_session(self, key: Expression) -> bool:
        named = self._bridge.kind(key) in {"AttributeReference", "Alias"}
        return named and bool(key.metadata().contains("spark.sessionWindow"))

    def _join(self, step: Step, inputs: list[Operator], append_only: bool) -> Operator:
        form, keys = str(step.plan.joinType().toString()), self._bridge.join_keys(step.plan)
        if form in {"Inner", "Cross"}:
            return InnerJoin(step, append_only, inputs, keys=keys)
        return KeyedJoin(step, append_only and form == "LeftSemi", inputs, keys=keys)


def _repeated_field(kind: Any) -> str | None:
    """The field that a struct has twice, at any depth; empty for a struct without fields. Parquet has neither."""
    if isinstance(kind, str):
        return None
    if kind["type"] != "struct":
        inner = [_repeated_field(kind[part]) for part in ("elementType", "keyType", "valueType") if part in kind]
        return next((found for found in inner if found is not None), None)
    names = [field["name"].lower() for field in kind["fields"]]
    if len(set(names)) < len(names) or not names:
        return next((name for name in names if names.count(name) > 1), "")
    return next((found for field in kind["fields"] if (found := _repeated_field(field["type"])) is not None), None)


def _projects_sorted(step: Step) -> bool:
    """Whether a step projects sorted rows: the optimiser moves projections below LIMIT."""
    while step.kind == "Project":
        step = step.children[0]
        if step.kind == "Sort":
            return True
    return False
