"""Aggregates above an inner join that add up values of one side.

Of that side no rows are kept, only their sums for each combination of the columns that the join and the groups read. A row of the other
side joins with all rows of a combination or with none, so their sums are enough. The state grows with the number of combinations, and not
with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.keys import Keys
from millstream.engine.incremental.operators.accumulators import Accumulators, accumulators_of, can_multiply
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.joins import InnerJoin
from millstream.engine.incremental.operators.linear import Linear
from millstream.engine.incremental.operators.sums import Sums
from millstream.engine.incremental.relations import Column, Delta, Relations, Step
from millstream.engine.incremental.tracing import Store, Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, column_names, partitioned
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan

_DIGITS = 38
"""A decimal with fewer digits has room for every result of its operation."""
_ARITHMETIC = {"Add", "Subtract", "Multiply"}
_HARMLESS = {
    *("AttributeReference", "Literal", "Cast", "Coalesce", "If", "CaseWhen", "And", "Or", "Not", "IsNull", "IsNotNull", "In"),
    *("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "KnownNotNull", "GetStructField"),
}
"""Expressions that have a value for every row."""
_INEXACT = ("float", "double", "collate", "map<")
"""Types whose equal values may differ, as 0.0 and -0.0 do: rows that are equal only so cannot stand for each other."""


@dataclass
class SummedJoin(InnerJoin):
    """A join that keeps the sums of one side."""

    kind: ClassVar[str] = "inner join of sums"

    summed: int = field(kw_only=True)
    """The side whose sums are kept. Its step has the columns that the sums are for, and then the accumulators."""
    accumulators: Accumulators = field(kw_only=True)

    @property
    def stores(self) -> tuple[str, ...]:
        sides = ["its left input", "its right input"]
        sides[self.summed] = f"sums of {sides[self.summed]}"
        return sides[0], sides[1]

    @property
    def grouped(self) -> tuple[Column, ...]:
        """The columns that the sums are for."""
        return self.step.children[self.summed].columns[: -len(self.accumulators.values)]

    def _hashed(self, tracing: Tracing, delta: Delta, side: int) -> DataFrame:
        if side != self.summed:
            return super()._hashed(tracing, delta, side)
        bridge = tracing.bridge
        frame = _arguments(bridge, delta.plan, self.grouped, self.accumulators, delta.weight, self.keys[side])
        if not tracing.form.large:  # few rows: they are not worth two aggregations
            frame = partitioned(frame, tracing.partitions)
        sums = [F.expr(f"{each.of_change} AS {each.name}") for each in self.accumulators.values]
        return self._placed(frame.groupBy(HASH, *column_names(len(self.grouped))).agg(*sums))

    def _say_how_it_merges(self, store: Store, side: int) -> None:
        if side == self.summed:
            store.merge_with(self._merged)
        else:
            super()._say_how_it_merges(store, side)

    def _merged(self, rows: DataFrame) -> DataFrame:
        """Rows of sums, those of the same columns added up."""
        groups = [HASH, *column_names(len(self.grouped))]
        accumulators = [f"c{len(self.grouped) + index} AS {each.name}" for index, each in enumerate(self.accumulators.values)]
        sums = [F.expr(f"{each.weighted} AS {each.name}") for each in self.accumulators.values]
        return self._placed(rows.selectExpr(*groups, *accumulators, WEIGHT).groupBy(*groups).agg(*sums))

    def _placed(self, sums: DataFrame) -> DataFrame:
        columns = column_names(len(self.grouped))
        accumulators = [f"{name} AS c{len(columns) + index}" for index, name in enumerate(self.accumulators.names)]
        return sums.where(f"NOT ({self.accumulators.nothing})").selectExpr(*columns, *accumulators, f"1L AS {WEIGHT}", HASH)


@dataclass(frozen=True, slots=True)
class JoinBelow:
    """An inner join below an aggregate, of which sums are enough."""

    aggregate: Step
    functions: list[Expression]
    between: list[Step]
    """The projections from the aggregate down to it."""
    join: Step
    side: int
    """The side whose sums are kept."""
    grouped: tuple[Column, ...]
    """Its columns that the join and the groups read."""

    def operators(self, bridge: Bridge, inputs: list[Operator]) -> list[Operator]:
        """The join over its inputs, what the projections compute of its rows, and the aggregate."""
        children, accumulators = list(self.join.children), accumulators_of(bridge, self.functions)
        children[self.side] = summed = _summed(bridge, children[self.side], self.grouped, accumulators)
        plan = bridge.join(children[0].plan, children[1].plan, self.join.plan.joinType(), self.join.plan.condition().get())
        step = Step("Join", plan, Relations(bridge).columns_of(plan), tuple(children))
        append_only, keys = all(each.append_only for each in inputs), bridge.join_keys(self.join.plan)
        found: list[Operator] = [SummedJoin(step, append_only, inputs, keys=keys, summed=self.side, accumulators=accumulators)]
        for items in filter(None, (_computed(bridge, project) for project in reversed(self.between))):
            plan = bridge.project([*bridge.items(plan.output()), *items], plan)
            step = Step("Project", plan, Relations(bridge).columns_of(plan), (step,))
            found.append(Linear(step, append_only, [found[-1]]))
        known = zip(accumulators.names, summed.columns[len(self.grouped) :], strict=True)
        sums = Sums(self.aggregate, False, [found[-1]], summed={name: column.attribute for name, column in known})
        return [*found, sums.prepare(bridge)]


def join_below(bridge: Bridge, aggregate: Step, keys: Keys) -> JoinBelow | None:
    """The join below an aggregate that can add up its functions, if the sums of one side are enough, and its rows are not known to be
    unique in the columns that are read.
    """
    between, join = list[Step](), aggregate.children[0]
    while join.kind == "Project":
        between.append(join)
        (join,) = join.children
    parts = bridge.aggregate_parts(aggregate.plan)
    if parts is None or join.kind != "Join" or str(join.plan.joinType().toString()) not in {"Inner", "Cross"}:
        return None
    if not bridge.join_keys(join.plan)[0] or not can_multiply(bridge, parts[1]):
        return None
    if not all(_cannot_fail(bridge, each) for function in parts[1] for each in _read_by(bridge, function)):
        return None  # a row that meets no other would be an error
    read, values = _ids(bridge, parts[0]), _ids(bridge, parts[1])
    for project in between:
        made = {int(item.exprId().id()): item for item in _computed(bridge, project)}
        read |= _ids(bridge, [made[number] for number in read & made.keys()])
    read |= _ids(bridge, [join.plan.condition().get()])
    for side, child in enumerate(join.children):
        grouped = tuple(column for column in child.columns if column.id in read)
        exact = not any(word in str(each.attribute.dataType().catalogString()).lower() for each in grouped for word in _INEXACT)
        unique = any(key <= {each.id for each in grouped} for key in keys.of(child))
        if values <= {column.id for column in child.columns} and exact and not unique:
            return JoinBelow(aggregate, parts[1], between, join, side, grouped)
    return None


def _read_by(bridge: Bridge, function: Expression) -> list[Expression]:
    """The arguments of an aggregate function, and its filter."""
    wanted = function.filter()
    return [*bridge.children(function.aggregateFunction()), *([wanted.get()] if wanted.isDefined() else [])]


def _cannot_fail(bridge: Bridge, value: Expression) -> bool:
    """Whether a value can be computed for every row. Arithmetic of whole numbers may overflow."""
    kind, result = bridge.kind(value), str(value.dataType().catalogString())
    has_room = result.startswith("decimal") and int(value.dataType().precision()) < _DIGITS
    if kind in _ARITHMETIC and not has_room and result not in {"float", "double"}:
        return False
    if kind == "Cast" and not bridge.widens(value):
        return False
    return kind in {*_ARITHMETIC, *_HARMLESS} and all(_cannot_fail(bridge, child) for child in bridge.children(value))


def _computed(bridge: Bridge, project: Step) -> list[Expression]:
    """The columns that a projection makes."""
    return [item for item in bridge.items(project.plan.projectList()) if bridge.kind(item) != "AttributeReference"]


def _ids(bridge: Bridge, expressions: Iterable[Expression]) -> set[int]:
    return {int(each.exprId().id()) for expression in expressions for each in bridge.items(expression.references().toSeq())}


def _summed(bridge: Bridge, side: Step, grouped: tuple[Column, ...], accumulators: Accumulators) -> Step:
    """A side of a join as the sums of its rows: the columns that they are for, with their identities, and the accumulators."""
    relations, one = Relations(bridge), bridge.expression("1L")
    frame = _arguments(bridge, side.plan, grouped, accumulators, one, [])
    sums = frame.groupBy(*column_names(len(grouped))).agg(*[F.expr(f"{each.of_change} AS {each.name}") for each in accumulators.values])
    plan, _ = relations.plan_of(sums, grouped, accumulators.names)
    return Step("Aggregate", plan, relations.columns_of(plan), (side,))


def _arguments(
    bridge: Bridge, plan: Plan, grouped: tuple[Column, ...], accumulators: Accumulators, weight: Expression, keys: list[Expression]
) -> DataFrame:
    """What accumulators are computed from: the columns that they are for, the arguments, the weight and the hash."""
    items = [*Relations(bridge).renamed(grouped), *(bridge.alias(argument, name) for argument, name in accumulators.arguments)]
    items += [bridge.alias(weight, WEIGHT), bridge.alias(bridge.hash_of(keys), HASH)]
    return bridge.frame(bridge.project(items, plan))
