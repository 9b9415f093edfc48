"""Which times in the changes to come are later than the watermark, less a fixed lag: their horizon.

Results of windows arrive when the watermark has passed the end of the window, so all that are to come end after it. This is followed from
the parts that Spark's stream computes through the operators of a query. A change to come has a later time than the horizon, or none: what
is stored for an earlier time can get no more changes. Whatever is not known to have a horizon has none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.leaving.times import Place, Times
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.by_window import ByWindow
from millstream.engine.incremental.operators.inputs import NativePart
from millstream.engine.incremental.operators.joins import InnerJoin, Join, KeyedJoin
from millstream.engine.incremental.operators.keyed import Keyed
from millstream.engine.incremental.operators.linear import Linear, Shared, UnionAll
from millstream.engine.incremental.operators.summed_joins import SummedJoin
from millstream.engine.incremental.operators.sums import Sums
from millstream.engine.incremental.operators.top import TopRanks
from millstream.engine.incremental.weights import column_names
from millstream.sql.catalyst.bridge import Bridge, Expression


@dataclass(frozen=True, slots=True)
class Horizon:
    """A time in changes to come is later than the watermark less `lag_us`."""

    lag_us: int
    window: Hashable = None
    """Identifies a window of each row, if the time is at a fixed distance from its end."""
    distance_us: int = 0

    def moved(self, by_us: int) -> Horizon:
        """That of a time which is so much later."""
        return replace(self, lag_us=self.lag_us - by_us, distance_us=self.distance_us + by_us)

    def in_window(self, window: Hashable) -> Horizon:
        """The same with another name of its window, if it has one."""
        return replace(self, window=window if self.window is not None else None)


KnownHorizons = Mapping[Place, Horizon]


class Horizons:
    """Follows horizons through the operators of a query, inputs first. Operators that are not listed have none."""

    def __init__(self, bridge: Bridge, feeds: Mapping[str, Feed], operators: Iterable[Operator]) -> None:
        self._bridge, self._feeds, self.times = bridge, feeds, Times(bridge)
        self._rules: dict[type[Operator], Callable[[Operator], KnownHorizons]] = {
            NativePart: self._of_part,
            Linear: self._of_rows,
            Shared: self._of_shared,
            UnionAll: self._of_union,
            ByWindow: self._of_windows,
            InnerJoin: self._of_join,
            SummedJoin: self._of_join,
            KeyedJoin: self._of_join,
            Sums: self._of_groups,
            Keyed: self._of_keys,
            TopRanks: self._of_keys,
        }
        self._known: dict[int, KnownHorizons] = {}
        for operator in operators:
            rule = self._rules.get(type(operator))
            shown = {column.id for column in operator.step.columns}
            found = rule(operator) if rule is not None else {}
            self._known[id(operator)] = {place: each for place, each in found.items() if place.column in shown}

    def of(self, operator: Operator) -> KnownHorizons:
        """The horizons in an operator's changes."""
        return self._known[id(operator)]

    def of_expression(self, value: Expression, known: KnownHorizons) -> Horizon | None:
        """The horizon of a value that is computed from changes."""
        if (exact := self.times.exact(value)) is not None:
            base = known.get(exact.place)
            return base.moved(exact.plus_us) if base is not None else None
        if (longest := self.times.truncated_by(value)) is not None:
            inner = self.of_expression(self._bridge.children(value)[1], known)
            return Horizon(inner.lag_us + longest) if inner is not None else None
        if self._bridge.kind(value) != "Coalesce":
            return None
        return self._weakest(self.of_expression(each, known) for each in self._bridge.children(value) if not self.times.is_null(each))

    def _weakest(self, found: Iterable[Horizon | None]) -> Horizon | None:
        each = list(found)
        lags = [one.lag_us for one in each if one is not None]
        return Horizon(max(lags)) if lags and len(lags) == len(each) else None

    # Operators without keys

    def _of_part(self, operator: Operator) -> KnownHorizons:
        step, lags = operator.step, self._feeds[operator.step.input].lags_us
        found: dict[Place, Horizon] = {}
        for name, column in zip(column_names(len(step.columns)), step.columns, strict=True):
            for field in self.times.fields_of(column.attribute):
                lag = lags.get(f"{name}.{field}" if field else name)
                if lag is not None:
                    found[Place(column.id, field)] = Horizon(lag, operator.number, -lag)
        return found

    def _of_rows(self, operator: Operator) -> KnownHorizons:
        plan, kind, below = operator.step.plan, operator.step.kind, self.of(operator.inputs[0])
        if kind == "Project":
            return dict(self._named(self._bridge.items(plan.projectList()), below))
        if kind != "Expand":
            return below
        found: dict[Place, Horizon] = {}
        copies = [self._bridge.items(copy) for copy in self._bridge.items(plan.projections())]
        for values, column in zip(zip(*copies, strict=True), self._bridge.items(plan.output()), strict=True):
            there = [each for each in values if not self.times.is_null(each)]
            for field in self.times.fields_of(column):
                horizon = self._weakest(self._of_field(each, field, below) for each in there)
                if horizon is not None:
                    found[Place(int(column.exprId().id()), field)] = horizon
        return found

    def _named(self, items: Iterable[Expression], below: KnownHorizons) -> Iterator[tuple[Place, Horizon]]:
        """The horizons of named expressions."""
        for item in items:
            for field in self.times.fields_of(item):
                horizon = self._of_field(self._bridge.unnamed(item), field, below)
                if horizon is not None:
                    yield Place(int(item.exprId().id()), field), horizon

    def _of_field(self, value: Expression, field: str, below: KnownHorizons) -> Horizon | None:
        """The horizon of a time, or of a field of a window, which is handed on as it is."""
        if not field:
            return self.of_expression(value, below)
        return below.get(Place(int(value.exprId().id()), field)) if self._bridge.kind(value) == "AttributeReference" else None

    def _of_shared(self, operator: Operator) -> KnownHorizons:
        pairs = zip(operator.inputs[0].step.columns, operator.step.columns, strict=True)
        ids = {old.id: new.id for old, new in pairs}
        return {Place(ids[place.column], place.field): each for place, each in self.of(operator.inputs[0]).items()}

    def _of_union(self, operator: Operator) -> KnownHorizons:
        found: dict[Place, Horizon] = {}
        outputs = [self._bridge.items(child.plan.output()) for child in operator.step.children]
        for column, *others in zip(operator.step.columns, *outputs, strict=True):
            for field in self.times.fields_of(column.attribute):
                pairs = zip(others, operator.inputs, strict=True)
                horizon = self._weakest(self._of_field(other, field, self.of(source)) for other, source in pairs)
                if horizon is not None:
                    found[Place(column.id, field)] = horizon
        return found

    def _of_windows(self, operator: Operator) -> KnownHorizons:
        """A step over the rows of one epoch: nothing in its changes is older than them."""
        if operator.step.kind == "Aggregate":
            return self._grouped(operator, self._bridge.items(operator.step.plan.groupingExpressions()))
        below = [self.of(each) for each in operator.inputs]
        return {place: replace(each, window=None) for known in below for place, each in known.items()}

    # Operators by key: a change touches the rows of its key, which may be old in all other columns

    def _of_groups(self, operator: Operator) -> KnownHorizons:
        return self._grouped(operator, self._bridge.items(operator.step.plan.groupingExpressions()))

    def _of_keys(self, operator: Operator) -> KnownHorizons:
        assert isinstance(operator, Keyed | TopRanks)
        if operator.step.kind == "Aggregate":
            return self._grouped(operator, operator.keys)
        return self._with_related(operator.keys, self.of(operator.inputs[0]))

    def _grouped(self, operator: Operator, keys: list[Expression]) -> KnownHorizons:
        below = self.of(operator.inputs[0])
        items = self._bridge.items(operator.step.plan.aggregateExpressions())
        found = dict(self._named(items, self._only(keys, below)))
        for item in items:
            inner = self._bridge.unnamed(item)
            horizon = self.of_expression(inner, below) if any(inner.semanticEquals(self._bridge.unnamed(key)) for key in keys) else None
            if horizon is not None:
                found.setdefault(Place(int(item.exprId().id()), ""), horizon)
        return found

    def _only(self, keys: Iterable[Expression], below: KnownHorizons) -> dict[Place, Horizon]:
        """The horizons of keys."""
        places = {place for key in keys for place in self.times.places_of(self._bridge.unnamed(key))}
        return {place: each for place, each in below.items() if place in places}

    def _with_related(self, keys: Iterable[Expression], below: KnownHorizons) -> KnownHorizons:
        """The horizons of keys, and of times at a fixed distance from them."""
        found = self._only(keys, below)
        for key in list(found.values()):
            found = self._related(key, below) | found
        return found

    def _related(self, key: Horizon, below: KnownHorizons) -> dict[Place, Horizon]:
        """The times at a fixed distance from a key."""
        alike = {place: each for place, each in below.items() if each.window is not None and each.window == key.window}
        return {place: key.moved(each.distance_us - key.distance_us) for place, each in alike.items()}

    # Joins

    def compared(self, join: Join) -> Iterator[tuple[tuple[Expression, Expression], tuple[Horizon | None, Horizon | None]]]:
        """The compared expressions of both sides, with their horizons."""
        left, right = (self.of(each) for each in join.inputs)
        for one, other in zip(*join.keys, strict=True):
            yield (one, other), (self.of_expression(one, left), self.of_expression(other, right))

    def _of_join(self, operator: Operator) -> KnownHorizons:
        """Two times that are compared have the weaker of their horizons: a change of one side returns rows of the other."""
        assert isinstance(operator, Join)
        found: dict[Place, Horizon] = {}
        for pair, (one, other) in self.compared(operator):
            if one is None or other is None:
                continue
            for side, value in enumerate(pair):
                for place, each in self._joined(operator, side, value, max(one.lag_us, other.lag_us)).items():
                    found[place] = min(found.get(place, each), each, key=lambda known: known.lag_us)
        return found

    def _joined(self, join: Join, side: int, value: Expression, lag_us: int) -> dict[Place, Horizon]:
        exact, below = self.times.exact(value), self.of(join.inputs[side])
        if exact is None or exact.place not in below:
            return {}
        key = replace(below[exact.place], lag_us=lag_us + exact.plus_us)
        if not isinstance(join, InnerJoin):
            return {exact.place: Horizon(key.lag_us)}  # a row without a partner has no time there
        found = {**self._related(key, below), exact.place: key}
        return {place: each.in_window((join.number, side, each.window)) for place, each in found.items()}
