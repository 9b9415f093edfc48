"""Which columns identify a row of a result: followed from the keys of the inputs through the steps of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.engine.incremental.relations import Step
from millstream.sql.catalyst.bridge import Bridge, Expression

Key = frozenset[int]
"""Ids of columns."""
_MOST = 8
_PASSING = {"Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "SubqueryAlias", "Repartition", "RepartitionByExpression"}
_LEFT_ONLY = {"LeftSemi", "LeftAnti"}


class Keys:
    """Finds keys. `inputs` gives the primary keys of inputs, by column names."""

    def __init__(self, bridge: Bridge, inputs: Mapping[str, tuple[str, ...]]) -> None:
        self._bridge, self._inputs = bridge, inputs

    def of(self, step: Step) -> list[Key]:
        """The keys of a step's rows, the shortest first. An empty key means that there is at most one row."""
        found = dict.fromkeys(self._of(step))
        smallest = [key for key in found if not any(other < key for other in found)]
        return sorted(smallest, key=len)[:_MOST]

    def _of(self, step: Step) -> Iterable[Key]:
        if step.input:
            names = {column.name: column.id for column in step.columns}
            key = self._inputs.get(step.input, ())
            return [frozenset(names[name] for name in key)] if key and all(name in names for name in key) else []
        if step.kind == "OneRowRelation":
            return [frozenset()]
        if step.kind in _PASSING:
            return self._without_constants(step, self.of(step.children[0])) if step.kind == "Filter" else self.of(step.children[0])
        if step.kind == "Project":
            return self._projected(step, self.of(step.children[0]), self._bridge.items(step.plan.projectList()))
        if step.kind == "Aggregate":
            return self._grouped(step)
        if step.kind == "Window":
            return [*self.of(step.children[0]), *self._numbered(step)]
        return self._joined(step) if step.kind == "Join" else []

    def _projected(self, step: Step, keys: list[Key], items: list[Expression]) -> list[Key]:
        """The keys whose columns are still there, perhaps under another identity."""
        kept: dict[int, int] = {}
        windows = self._windows(step)
        for item in items:
            inner = self._whole_window(self._bridge.unnamed(item), windows)
            if self._bridge.kind(inner) == "AttributeReference":
                kept.setdefault(int(inner.exprId().id()), int(item.exprId().id()))
        return [frozenset(kept[column] for column in key) for key in keys if all(column in kept for column in key)]

    def _grouped(self, step: Step) -> list[Key]:
        items = self._bridge.items(step.plan.aggregateExpressions())
        found: set[int] = set()
        windows = self._windows(step)
        for group in self._bridge.items(step.plan.groupingExpressions()):
            shown = next((item for item in items if self._whole_window(self._bridge.unnamed(item), windows).semanticEquals(group)), None)
            if shown is None:
                return []
            found.add(int(shown.exprId().id()))
        return [frozenset(found)]

    def _windows(self, step: Step) -> frozenset[int]:
        """The columns below a step that are the windows of one call: those of `window` have one length, and sessions do not overlap, so an
        edge identifies the window. A union may mix windows of several calls, and an input may bring any.
        """
        steps = [each for child in step.children for each in child.walk()]
        if any(each.kind == "Union" for each in steps):
            return frozenset()
        made: set[int] = set()
        for each in steps:
            if each.kind == "Project":
                items = self._bridge.items(each.plan.projectList())
                made |= {int(item.exprId().id()) for item in items if self._bridge.kind(self._bridge.unnamed(item)) != "AttributeReference"}
            elif each.kind == "Expand":
                known = {column.id for column in each.children[0].columns}
                made |= {column.id for column in each.columns if column.id not in known}
        return frozenset(made)

    def _whole_window(self, value: Expression, windows: frozenset[int]) -> Expression:
        """The window that a value is an edge of; else the value."""
        if self._bridge.kind(value) != "GetStructField" or self._bridge.kind(value.child()) != "AttributeReference":
            return value
        window = value.child()
        marked = window.metadata().contains("spark.timeWindow") or self._bridge.is_session(window)
        return window if int(window.exprId().id()) in windows and marked else value

    def _numbered(self, step: Step) -> list[Key]:
        """`row_number()` numbers the rows of a partition."""
        partition = self._bridge.items(step.plan.partitionSpec())
        if any(self._bridge.kind(each) != "AttributeReference" for each in partition):
            return []
        columns = frozenset(int(each.exprId().id()) for each in partition)
        numbers = [item for item in self._bridge.items(step.plan.windowExpressions()) if self._is_row_number(item)]
        return [columns | {int(item.exprId().id())} for item in numbers]

    def _is_row_number(self, item: Expression) -> bool:
        inner = self._bridge.unnamed(item)
        return self._bridge.kind(inner) == "WindowExpression" and self._bridge.kind(inner.windowFunction()) == "RowNumber"

    def _without_constants(self, step: Step, keys: list[Key]) -> list[Key]:
        """A column that equals a literal identifies nothing."""
        fixed: set[int] = set()
        for part in self._bridge.conjuncts(step.plan.condition()):
            kinds = [self._bridge.kind(side) for side in self._bridge.children(part)]
            if self._bridge.kind(part) == "EqualTo" and "Literal" in kinds and "AttributeReference" in kinds:
                fixed.add(int(self._bridge.children(part)[kinds.index("AttributeReference")].exprId().id()))
        return [key - fixed for key in keys]

    def _joined(self, step: Step) -> list[Key]:
        form = str(step.plan.joinType().toString())
        if form == "FullOuter":
            return []  # unmatched rows of both sides are alike where keys are null
        left, right = (self.of(child) for child in step.children)
        if form in _LEFT_ONLY or form.startswith("ExistenceJoin"):
            return left
        compared = [frozenset(self._columns(side)) for side in self._bridge.join_keys(step.plan)]
        found = [one | other for one in left for other in right]
        if form in {"Inner", "Cross", "LeftOuter"} and any(key <= compared[1] for key in right):
            found += left
        if form in {"Inner", "Cross", "RightOuter"} and any(key <= compared[0] for key in left):
            found += right
        return found

    def _columns(self, expressions: list[Expression]) -> Iterable[int]:
        return [int(each.exprId().id()) for each in expressions if self._bridge.kind(each) == "AttributeReference"]
