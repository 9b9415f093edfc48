"""Which stored rows can get no more changes once the watermark has passed a time in them: they may leave at any moment.

A store is read for the keys that changes touch. If a key holds a time with a horizon, no change to come touches an earlier one. An inner
join reads the rows of one side for the changes of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.engine.incremental.compilation import Compilation
from millstream.engine.incremental.leaving.horizons import Horizon, Horizons, KnownHorizons
from millstream.engine.incremental.leaving.times import Place
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.joins import InnerJoin, Join, KeyedJoin
from millstream.engine.incremental.operators.keyed import Keyed
from millstream.engine.incremental.operators.summed_joins import SummedJoin
from millstream.engine.incremental.operators.sums import Sums
from millstream.engine.incremental.operators.top import TopRanks
from millstream.engine.incremental.relations import Step
from millstream.engine.incremental.tracing import SMALL, store_name
from millstream.sql.catalyst.bridge import Bridge, Expression


@dataclass(frozen=True, slots=True)
class LeavingRule:
    """The rows of a store leave when the watermark is `lag_us` past a time in them."""

    time: str
    """SQL over the columns of the store."""
    lag_us: int

    def staying(self, watermark_us: int) -> str:
        """The condition on rows that stay."""
        return f"({self.time} IS NULL OR unix_micros({self.time}) > {watermark_us - self.lag_us}L)"


LeavingRules = dict[str, LeavingRule]
"""Store → its rows that leave."""


def leaving_rules(compilation: Compilation) -> LeavingRules:
    """The stores of a compiled query whose rows leave."""
    horizons = Horizons(compilation.bridge, compilation.feeds, compilation.operators)
    rules = _Rules(compilation.bridge, horizons)
    found = {store_name(each.number, store): rule for each in compilation.operators for store, rule in rules.of(each).items()}
    return found | _declared_key(compilation, horizons.of(compilation.root))


def _declared_key(compilation: Compilation, known: KnownHorizons) -> LeavingRules:
    """The store of a primary key that is checked."""
    bridge, name = compilation.bridge, store_name(len(compilation.operators), "keys")
    schema = compilation.epoch_for(SMALL).schemas.get(name)
    names = {str(each.name()) for each in bridge.items(schema)} if schema is not None else set()
    ids = enumerate(int(each.exprId().id()) for each in bridge.items(compilation.root_step.plan.output()))
    shown = {f"c{index}": Place(column) for index, column in ids}
    found = [LeavingRule(place, known[time].lag_us) for place, time in shown.items() if time in known and place in names]
    return {name: _first(found)} if found else {}


class _Rules:
    """Finds the times by which the rows of an operator's stores leave."""

    def __init__(self, bridge: Bridge, horizons: Horizons) -> None:
        self._bridge, self._horizons, self._times = bridge, horizons, horizons.times

    def of(self, operator: Operator) -> LeavingRules:
        if type(operator) is Sums:
            return self._sums(operator)
        if type(operator) is Keyed or type(operator) is TopRanks:
            return self._keyed(operator, operator.keys)
        if type(operator) is InnerJoin or type(operator) is SummedJoin:
            return self._inner(operator)
        return self._join(operator) if type(operator) is KeyedJoin else {}

    def _sums(self, operator: Sums) -> LeavingRules:
        known, found = self._horizons.of(operator.inputs[0]), list[LeavingRule]()
        for index, key in enumerate(map(self._bridge.unnamed, operator.keys)):
            horizon = self._horizons.of_expression(key, known)
            found += [LeavingRule(f"k{index}", horizon.lag_us)] if horizon is not None else []
            windows = [place for place in self._times.places_of(key) if place.field and place in known] if horizon is None else []
            found += [LeavingRule(f"k{index}.{place.field}", known[place].lag_us) for place in windows]
        return {"sums": _first(found)} if found else {}

    def _keyed(self, operator: Operator, keys: Iterable[Expression]) -> LeavingRules:
        """What was returned for a key and what it was computed from leave together: two keys may have the same hash."""
        below, found = operator.inputs[0], list[tuple[LeavingRule, LeavingRule]]()
        known = self._horizons.of(below)
        for place in (place for key in keys for place in self._times.places_of(key) if place in known):
            shown = self._shown(operator.step, place)
            if shown is not None:
                lag = known[place].lag_us
                found.append((LeavingRule(_text(below.step, place), lag), LeavingRule(_text(operator.step, shown), lag)))
        given, returned = min(found, key=lambda pair: pair[0].lag_us, default=(None, None))
        return {"input": given, "result": returned} if given is not None and returned is not None else {}

    def _shown(self, step: Step, place: Place) -> Place | None:
        """Where a time of a key is in the result."""
        if step.kind != "Aggregate":
            return place if any(column.id == place.column for column in step.columns) else None
        for item in self._bridge.items(step.plan.aggregateExpressions()):
            inner, shown = self._bridge.unnamed(item), int(item.exprId().id())
            if place in self._times.places_of(inner):
                is_window = self._bridge.kind(inner) == "AttributeReference"
                return Place(shown, place.field if is_window else "")
        return None

    def _inner(self, join: InnerJoin) -> LeavingRules:
        """A row leaves when no row to come of the other side can meet it; of a side that removes rows, also when it cannot be removed."""
        found: dict[str, list[LeavingRule]] = {"left": [], "right": []}
        for pair, horizons in self._horizons.compared(join):
            for side, name in enumerate(found):
                needed = [horizons[1 - side], *([] if join.inputs[side].append_only else [horizons[side]])]
                found[name] += self._leaving(join, side, pair[side], needed)
        return {name: _first(rules) for name, rules in found.items() if rules}

    def _join(self, join: KeyedJoin) -> LeavingRules:
        """A change of either side reads both."""
        found: dict[str, list[LeavingRule]] = {"left": [], "right": []}
        for pair, horizons in self._horizons.compared(join):
            sides = [self._leaving(join, side, pair[side], horizons) for side in range(2)]
            if all(sides):
                found["left"] += sides[0]
                found["right"] += sides[1]
        return {name: _first(rules) for name, rules in found.items() if rules}

    def _leaving(self, join: Join, side: int, value: Expression, horizons: Iterable[Horizon | None]) -> list[LeavingRule]:
        lags = [each.lag_us if each is not None else None for each in horizons]
        exact, step = self._times.exact(value), join.step.children[side]
        if exact is None or None in lags:
            return []
        return [LeavingRule(_text(step, exact.place), max(lag for lag in lags if lag is not None) + exact.plus_us)]


def _text(step: Step, place: Place) -> str:
    """A time in a stored row of a step."""
    index = next(index for index, column in enumerate(step.columns) if column.id == place.column)
    return f"c{index}.{place.field}" if place.field else f"c{index}"


def _first(found: Iterable[LeavingRule]) -> LeavingRule:
    """The rule by which rows leave first."""
    return min(found, key=lambda each: each.lag_us)
