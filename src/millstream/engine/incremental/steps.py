"""From a query's analysed plan to steps that operators can keep up to date.

Spark's optimiser turns correlated subqueries, EXISTS and IN, set operations, PIVOT, GROUPING SETS and LATERAL into joins and aggregates.
Three rewrites do the rest: a scalar subquery becomes a join with its one row, `NOT IN` an anti join with a check for nulls, and
aggregates of DISTINCT values become aggregates over an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.engine.incremental.distinct_copies import with_ordered_copies
from millstream.engine.incremental.relations import Refused, Relations, Step
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan
from millstream.worker import marks

_RULES = (
    "InferWindowGroupLimit",
    "LimitPushDown",
    "LimitPushDownThroughWindow",
    "PushProjectionThroughLimitAndOffset",
    "ConvertToLocalRelation",
    "PropagateEmptyRelation",
    "MergeScalarSubqueries",
)
CONF = {
    # rules that are right for one batch, and wrong or useless for a result that is kept up to date
    "spark.sql.optimizer.excludedRules": ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _RULES),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.join.forceApplyShuffledHashJoin": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.exchange.reuse": "false",  # a reused exchange would hide its leaves from `Bridge.bound`
}
"""Settings of the session in which plans are optimised and compiled."""


_SEVERAL = "MS180"
_OUTSIDE = "compute it in a node whose rows this query reads"


def step_of(bridge: Bridge, plan: Plan, inputs: Mapping[int, str]) -> Step:
    """A plan as a tree of steps. `inputs` names the leaves: the id of a leaf's RDD → the input."""
    children = tuple(step_of(bridge, child, inputs) for child in bridge.children(plan))
    name = inputs.get(bridge.rdd_id(plan), "") if bridge.is_leaf(plan) else ""
    return Step(bridge.kind(plan), plan, Relations(bridge).columns_of(plan), children, name)


def refuse_clock(bridge: Bridge, plan: Plan) -> None:
    """Refuse functions that read the clock. The optimiser turns `current_timestamp()` into a literal, so they are looked for before."""
    if not bridge.uses_clock(plan):
        return
    for expression in (each for root in bridge.expressions(plan) for each in _below(bridge, root)):
        if bridge.uses_clock(expression) and not any(map(bridge.uses_clock, bridge.children(expression))):
            raise Refused(
                f"`{expression.sql()}` changes with the clock, and rows that were computed before would not; {_OUTSIDE}", expression
            )


def _below(bridge: Bridge, expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in bridge.children(expression):
        yield from _below(bridge, child)


class Steps:
    """Makes the tree of steps. `inputs` names the leaves: the id of a leaf's RDD → the input. Messages name the `node`."""

    def __init__(self, bridge: Bridge, inputs: Mapping[int, str], node: str) -> None:
        self._bridge, self._inputs, self._node, self._relations = bridge, inputs, node, Relations(bridge)

    def of(self, analysed: Plan) -> Step:
        for inner in self._bridge.subquery_plans(analysed):
            self._refuse_lost_limit(inner, limited=False)
        return step_of(self._bridge, self._rewrite(self._bridge.optimised(analysed)), self._inputs)

    def _refuse_lost_limit(self, plan: Plan, *, limited: bool) -> None:
        """LIMIT of a subquery is one for each outer row. Where an inner column equals an expression of outer ones (a cast is enough), Spark
        compares them above the LIMIT, which is then one of all rows.
        """
        bridge = self._bridge
        limited = limited or bridge.kind(plan) in {"GlobalLimit", "Offset"}
        if limited and bridge.kind(plan) == "Filter":
            for part in bridge.conjuncts(plan.condition()):
                if bridge.kind(part) in {"EqualTo", "EqualNullSafe"} and any(map(self._is_outer_expression, bridge.children(part))):
                    reason = f"`{part.sql()}` below LIMIT compares with an expression of the outer query, and Spark would lose the LIMIT"
                    raise Refused(f"{reason}; give the expression a name in a subquery of its own, and compare with that column", part)
        for child in bridge.children(plan):
            self._refuse_lost_limit(child, limited=limited)

    def _is_outer_expression(self, side: Expression) -> bool:
        kinds = {self._bridge.kind(each) for each in _below(self._bridge, side)}
        return "OuterReference" in kinds and self._bridge.kind(side) != "OuterReference"

    def _rewrite(self, plan: Plan) -> Plan:
        bridge = self._bridge
        before = bridge.children(plan)
        after = [self._rewrite(child) for child in before]
        if any(one is not other for one, other in zip(before, after, strict=True)):
            plan = bridge.with_children(plan, after)
        if self._scalars(plan):
            plan = self._join_scalars_of_aggregate(plan) if bridge.kind(plan) == "Aggregate" else self._join_scalars(plan)
        kind = bridge.kind(plan)
        if kind == "Join" and str(plan.joinType().toString()) == "LeftAnti":
            return self._separate_nulls(plan)
        return self._separate_distinct(with_ordered_copies(bridge, plan)) if kind == "Aggregate" else plan

    # Scalar subqueries

    def _scalars(self, plan: Plan) -> list[Expression]:
        found = [each for root in self._bridge.items(plan.expressions()) for each in _below(self._bridge, root)]
        return [each for each in found if self._bridge.kind(each) == "ScalarSubquery"]

    def _join_scalars(self, plan: Plan) -> Plan:
        """Join the first child with the one row of each subquery."""
        bridge = self._bridge
        if not bridge.children(plan):
            raise Refused(f"a subquery in `{bridge.kind(plan)}`", plan)
        first, *others = bridge.children(plan)
        output = bridge.items(plan.output())
        values: list[tuple[Expression, Expression]] = []
        for scalar in self._scalars(plan):
            if any(scalar.fastEquals(old) for old, _ in values):
                continue
            one = self._one_row(self._rewrite(scalar.plan()))
            first = self._join_below_order(first, one)
            values.append((scalar, bridge.items(one.output())[0]))
        rewritten = bridge.with_expressions(bridge.with_children(plan, [first, *others]), values)
        return rewritten if bridge.kind(plan) in {"Project", "Aggregate"} else bridge.project(output, rewritten)

    def _join_below_order(self, plan: Plan, one: Plan) -> Plan:
        """A plan joined with one row. Its order stays above the join, since a LIMIT may need it."""
        if self._bridge.kind(plan) == "Sort":
            return self._bridge.with_children(plan, [self._join_below_order(plan.child(), one)])
        return self._bridge.join(plan, one, "inner", None)

    def _join_scalars_of_aggregate(self, aggregate: Plan) -> Plan:
        """Subqueries in arguments and keys are joined below an aggregate, those in its results above it."""
        bridge = self._bridge
        parts = bridge.aggregate_parts(aggregate)
        if parts is None:
            raise Refused("a subquery in an aggregate of a function of your own", aggregate)
        keys, functions, results = parts
        named = [bridge.alias(each, str(each.resultAttribute().name()), each.resultAttribute().exprId()) for each in functions]
        inner = bridge.aggregate([bridge.unnamed(key) for key in keys], [*keys, *named], aggregate.child())
        inner = self._join_scalars(inner) if self._scalars(inner) else inner
        outer = bridge.project(results, inner)
        return self._join_scalars(outer) if self._scalars(outer) else outer

    def _one_row(self, plan: Plan) -> Plan:
        """A scalar subquery's plan with exactly one row: null if there is none, and an error if there are several."""
        bridge = self._bridge
        if bridge.kind(plan) == "Aggregate" and plan.groupingExpressions().isEmpty():
            return plan
        value = bridge.items(plan.output())[0]
        rows, first = bridge.alias(bridge.count(bridge.expression("1L")), "rows"), bridge.alias(bridge.first(value), "value")
        single = bridge.aggregate([], [rows, first], plan)
        message = f"{marks.refusal(_SEVERAL, self._node, 'sql')}a scalar subquery returned more than one row"
        several = bridge.resolved(f"raise_error('{message}')", first.toAttribute().dataType())
        more = bridge.make("GreaterThan", rows.toAttribute(), bridge.expression("1L"))
        return bridge.project([bridge.alias(bridge.make("If", more, several, first.toAttribute()), "value")], single)

    # NOT IN

    def _separate_nulls(self, join: Plan) -> Plan:
        """`a NOT IN (SELECT b …)` is an anti join on `a = b`, and true only if no `b` is null, or there is no `b` at all."""
        bridge = self._bridge
        if not join.condition().isDefined():
            return join
        parts = bridge.conjuncts(join.condition().get())
        if len(parts) > 1 or not self._null_aware(parts[0]):
            return join  # of several columns, or correlated: the condition is evaluated as it is
        equality = parts[0].left()
        left, right = self._sides(equality, join)
        is_null = bridge.make(
            "If", bridge.make("IsNull", right), bridge.expression("1L"), bridge.null_of(bridge.expression("1L").dataType())
        )
        rows, nulls = bridge.alias(bridge.count(bridge.expression("1L")), "rows"), bridge.alias(bridge.count(is_null), "nulls")
        counts = bridge.aggregate([], [rows, nulls], join.right())
        anti = bridge.join(join.left(), join.right(), "leftanti", equality)
        none = bridge.make("EqualTo", rows.toAttribute(), bridge.expression("0L"))
        no_null = bridge.make("EqualTo", nulls.toAttribute(), bridge.expression("0L"))
        keep = bridge.make("Or", none, bridge.make("And", no_null, bridge.make("IsNotNull", left)))
        return bridge.project(bridge.items(join.output()), bridge.filter(keep, bridge.join(anti, counts, "inner", None)))

    def _null_aware(self, part: Expression) -> bool:
        """Whether a condition is `a = b OR (a = b) IS NULL`."""
        kind = self._bridge.kind
        if kind(part) != "Or" or kind(part.left()) != "EqualTo" or kind(part.right()) != "IsNull":
            return False
        return bool(part.right().child().fastEquals(part.left()))

    def _sides(self, equality: Expression, join: Plan) -> tuple[Expression, Expression]:
        """The side of an equality that belongs to the left input, and the other."""
        bridge = self._bridge
        left = {each.id for each in self._relations.columns_of(join.left())}
        used = {int(each.exprId().id()) for each in bridge.items(equality.left().references().toSeq())}
        return (equality.left(), equality.right()) if used <= left else (equality.right(), equality.left())

    # DISTINCT in aggregates

    def _separate_distinct(self, aggregate: Plan) -> Plan:
        """`f(DISTINCT x) GROUP BY k` is `f(x) GROUP BY k` over the distinct pairs of `k` and `x`, if all functions have the same `x`."""
        bridge = self._bridge
        parts = bridge.aggregate_parts(aggregate)
        functions = parts[1] if parts else []
        if not functions or not all(each.isDistinct() and each.filter().isEmpty() for each in functions):
            return aggregate
        texts = {tuple(str(one.canonicalized().toString()) for one in bridge.children(each.aggregateFunction())) for each in functions}
        if len(texts) != 1:
            return aggregate
        keys, arguments = bridge.items(aggregate.groupingExpressions()), bridge.children(functions[0].aggregateFunction())
        if any(map(bridge.is_session, [*keys, *arguments])):
            return aggregate  # the sessions of one value of `x` are not those of all
        named = [(each, bridge.alias(each, "k")) for each in [*keys, *arguments] if not bool(each.foldable())]
        inner = bridge.aggregate([each for each, _ in named], [alias for _, alias in named], aggregate.child())
        columns = [(each, alias.toAttribute()) for each, alias in named]
        plain = [(each, bridge.plain_aggregate(each, columns)) for each in self._functions_in(aggregate)]
        items = []
        for item, attribute in zip(bridge.items(aggregate.aggregateExpressions()), bridge.items(aggregate.output()), strict=True):
            new = bridge.substituted(bridge.substituted(item, plain), columns)
            items.append(new if bridge.kind(new) == "Alias" else bridge.alias(new, attribute.name(), attribute.exprId()))
        groups = [bridge.substituted(key, columns) for key in keys]
        return bridge.aggregate(groups, items, inner)

    def _functions_in(self, aggregate: Plan) -> list[Expression]:
        found = [each for item in self._bridge.items(aggregate.aggregateExpressions()) for each in _below(self._bridge, item)]
        return [each for each in found if self._bridge.kind(each) == "AggregateExpression"]
