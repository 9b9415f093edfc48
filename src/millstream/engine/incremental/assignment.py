"""Assigns an operator to every step of a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.keys import Keys
from millstream.engine.incremental.operators.accumulators import can_add_up
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.by_window import ByWindow
from millstream.engine.incremental.operators.inputs import FixedRows, Input, NativePart, RecentRows, Table
from millstream.engine.incremental.operators.joins import InnerJoin, KeyedJoin
from millstream.engine.incremental.operators.keyed import Keyed
from millstream.engine.incremental.operators.linear import Linear, Shared, UnionAll
from millstream.engine.incremental.operators.summed_joins import join_below
from millstream.engine.incremental.operators.sums import Sums
from millstream.engine.incremental.operators.top import FirstRows, TopRanks, TopRows, limit_of, rank_limit_of
from millstream.engine.incremental.relations import Refused, Step, is_unstorable
from millstream.engine.incremental.weights import column_names
from millstream.sql.analysed import plans
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
        self._root: Step | None = None

    def assign(self, step: Step) -> Operator:
        """The operator of a whole query; those below it come before it in `operators`."""
        self._require_storable(step)
        self._root = step
        return self._assign(step)

    def assign_below(self, chain: list[Step], step: Step) -> Operator:
        """The operator of a query below its last ORDER BY and LIMIT, the `chain`, which are applied once, at the end."""
        operator = self.assign(step)
        limit = limit_of(self._bridge, chain) if operator.append_only else None
        if limit is None:
            return operator
        first = FirstRows(step, False, [operator], number=len(self.operators), most=limit[0], order=limit[1])
        self.operators.append(first)
        return first

    def _assign(self, step: Step) -> Operator:
        return self._add(self._shared(step) or self._new(step))

    def _add(self, operator: Operator) -> Operator:
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
        if step.kind not in (*_SHARED, "Filter") and not (step.input and self._feeds[step.input].keeps_rows):
            return None
        for operator in self.operators:
            same = operator.step.kind == step.kind and len(operator.step.columns) == len(step.columns)
            if step.kind == "Filter" and not isinstance(operator, TopRanks):
                continue
            if same and not isinstance(operator, Shared) and step.plan.sameResult(operator.step.plan):
                return Shared(step, operator.append_only, [operator])
        return None

    def _new(self, step: Step) -> Operator:
        self._require_deterministic(step)
        if step.input:
            return self._input(step)
        if step.kind in _FIXED:
            return FixedRows(step, True)
        if step.kind in _LIMITS:
            return self._limit(step)
        if step.kind in _WORDS or (len(step.children) > 2 and step.kind != "Union"):
            raise Refused(f"{_WORDS.get(step.kind, step.kind)} cannot be kept up to date", step.plan)
        if found := self._top_ranks(step) or self._sums_of_join(step):
            return found
        return self._over(step, [self._assign(child) for child in step.children])

    def _over(self, step: Step, inputs: list[Operator]) -> Operator:
        """The operator of a step over those of its children."""
        append_only = all(each.append_only for each in inputs)
        if step.kind in _BY_KEY and self._over_windows(step, inputs) is not None:
            return ByWindow(step, append_only, inputs)
        if step.kind in {"Join", "Window"} or (step.kind == "Aggregate" and not self._adds_up(step, append_only)):
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
            return Keyed(step, False, inputs, keys=self._partition_of(step))
        raise Refused(f"the step `{step.kind}` cannot be kept up to date", step.plan)

    def _input(self, step: Step) -> Operator:
        feed = self._feeds[step.input]
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
                reason += "; compute it in a node whose rows this query reads"
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
        below, chain = step, []
        while below.kind in _LIMITS or below.kind == "Sort" or _projects_sorted(below):
            chain.append(below)
            below = below.children[0]
        self._require_storable(below)
        limit = limit_of(self._bridge, chain) if self._only_adds(below) else None
        if limit is not None:
            return TopRows(step, False, [self._assign(below)], most=limit[0], order=limit[1])
        return Keyed(step, False, [self._assign(below)])

    def _top_ranks(self, step: Step) -> Operator | None:
        """The operator of window functions and the condition on a rank above them, if rows beyond it never return."""
        limit = rank_limit_of(self._bridge, step)
        if limit is None or not self._only_adds(step.children[0].children[0]):
            return None
        (window,) = step.children
        (below,) = window.children
        self._require_deterministic(window)
        self._require_storable(below)
        keys, rows = self._partition_of(window), self._assign(below)
        if self._over_windows(window, [rows]) is not None:
            return Linear(step, True, [self._add(ByWindow(window, True, [rows]))])
        return TopRanks(step, False, [rows], keys=keys, most=limit[0], rank=limit[1], counts=limit[2])

    def _sums_of_join(self, step: Step) -> Operator | None:
        """The operator of an aggregate above a join of which sums are enough."""
        keys = Keys(self._bridge, {name: feed.key for name, feed in self._feeds.items() if feed.is_keyed})
        below = join_below(self._bridge, step, keys) if step.kind == "Aggregate" else None
        if below is None or self._is_read_twice(below.join) or not self._adds_up(step, all(map(self._only_adds, below.join.children))):
            return None
        for each in (*below.between, below.join):
            self._require_deterministic(each)
        inputs = [self._assign(child) for child in below.join.children]
        if self._over_windows(below.join, inputs) is not None:
            return self._over_each(inputs, [below.join, *reversed(below.between), step])
        self._require_hashable(self._bridge.items(step.plan.groupingExpressions()), step)
        join, *others, sums = below.operators(self._bridge, inputs)
        for child in join.step.children:
            self._require_storable(child)
        for operator in (join, *others):
            self._add(operator)
        return sums

    def _over_each(self, inputs: list[Operator], steps: list[Step]) -> Operator:
        """The operator of the last step, each over the one before it."""
        for step in steps[:-1]:
            inputs = [self._add(self._over(step, inputs))]
        return self._over(steps[-1], inputs)

    def _is_read_twice(self, step: Step) -> bool:
        """Whether the query has an equal step: the state of both is one."""
        alike = [each for each in self._root.walk() if each.kind == step.kind] if self._root else []
        return sum(bool(each.plan.sameResult(step.plan)) for each in alike) > 1

    def _partition_of(self, window: Step) -> list[Expression]:
        keys = self._bridge.items(window.plan.partitionSpec())
        self._require_order(window)
        self._require_hashable(keys, window)
        return keys

    def _only_adds(self, step: Step) -> bool:
        """Whether a step never removes a row: the `append_only` of the operator that it will get."""
        if step.input:
            feed = self._feeds[step.input]
            return feed.append_only and not feed.keeps_rows
        if step.kind == "Join" and str(step.plan.joinType().toString()) not in {"Inner", "Cross", "LeftSemi"}:
            return False
        return step.kind in {*_LINEAR, *_FIXED, "Union", "Join"} and all(map(self._only_adds, step.children))

    def _require_hashable(self, keys: Iterable[Expression], step: Step) -> None:
        if any(map(plans.has_maps, keys)):
            raise Refused(
                "a map in GROUP BY, DISTINCT, PARTITION BY or a join's condition cannot be a key; use its sorted `map_entries(…)`",
                step.plan,
            )

    def _aggregate(self, step: Step, inputs: list[Operator]) -> Operator:
        keys = self._bridge.items(step.plan.groupingExpressions())
        self._require_hashable(keys, step)
        if self._adds_up(step, inputs[0].append_only):
            return Sums(step, False, inputs).prepare(self._bridge)
        # Spark merges sessions when it runs the aggregate: below it each row has one of its own, so the key is the other columns
        return Keyed(step, False, inputs, keys=[key for key in keys if not self._bridge.is_session(key)])

    def _adds_up(self, step: Step, append_only: bool) -> bool:
        sessions = any(map(self._bridge.is_session, self._bridge.items(step.plan.groupingExpressions())))
        return not sessions and can_add_up(self._bridge, step, append_only)

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
