"""Cuts the windowed aggregates out of a query, in its analysed plan.

Spark runs one windowed aggregate as a stream, and all groups of a window leave it in the same epoch, complete and once. So each windowed
aggregate becomes a part of its own, and a leaf in what is left. The rest runs on the rows of one epoch if it works window by window, and
is kept up to date otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from millstream.sql.analysed import plans
from millstream.sql.analysed.plans import Expression, Plan
from millstream.sql.catalyst.aggregates import count_sets
from millstream.sql.catalyst.bridge import Bridge


@dataclass(frozen=True, slots=True)
class Cut:
    """A query in two: what Spark's stream computes, and what is computed from its rows."""

    parts: tuple[Plan, ...]
    """The windowed aggregates."""
    rest: Plan
    """The query, with leaves in their place."""
    leaves: tuple[tuple[Plan, int], ...]
    """The leaves, each with the number of its part. A part that the query reads twice has two leaves."""

    def over(self, bridge: Bridge, rows: Sequence[Plan]) -> Plan:
        """The rest, over the rows of the parts. Columns are found by their place."""
        found = [(leaf, with_columns_of(bridge, leaf, rows[number], plans.names(self.parts[number]))) for leaf, number in self.leaves]
        return bridge.replaced_everywhere(self.rest, found)


def cut_windows(bridge: Bridge, plan: Plan, aggregates: Iterable[Plan]) -> Cut:
    """Cut aggregates out of a plan."""
    parts: list[Plan] = []
    leaves: list[tuple[Plan, int]] = []
    pairs: list[tuple[Plan, Plan]] = []
    for aggregate in sorted(aggregates, key=_place):
        part = _with_each_column_once(bridge, aggregate)
        number = next((index for index, known in enumerate(parts) if known.sameResult(part)), len(parts))
        parts += [part] if number == len(parts) else []
        columns = [each.withName(f"c{place}") for place, each in enumerate(plans.items(part.output()))]
        leaf = bridge.leaf(bridge.seq(columns), bridge.empty_rdd())
        leaves.append((leaf, number))
        pairs.append((aggregate, leaf))
    return Cut(tuple(parts), bridge.replaced_everywhere(plan, pairs), tuple(leaves))


def _place(aggregate: Plan) -> tuple[int, int]:
    """Its place in the text. Spark numbers the states of a query by the order of its parts, and that must not change."""
    found = plans.step_origin(aggregate)
    return (found.line, found.column) if found else (0, 0)


def _with_each_column_once(bridge: Bridge, aggregate: Plan) -> Plan:
    """An aggregate without the repetitions of `SELECT k, k`."""
    items = plans.items(aggregate.aggregateExpressions())
    once = list({plans.expr_id(item): item for item in items}.values())
    keys = plans.items(aggregate.groupingExpressions())
    return bridge.aggregate(keys, once, plans.children(aggregate)[0]) if len(once) < len(items) else aggregate


def windowed_aggregates(plan: Plan, *, of_inputs: bool = False) -> list[Plan]:
    """The lowest aggregates by a window, also in subqueries: down to the inputs, or with `of_inputs` also in their plans."""
    if plans.input_name(plan) and not of_inputs:
        return []
    inner = [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]
    below = [found for child in inner for found in windowed_aggregates(child, of_inputs=of_inputs)]
    return below or ([plan] if _window_key(plan) is not None else [])


def streamed(bridge: Bridge, aggregate: Plan) -> Plan:
    """An aggregate as Spark's stream can run it: DISTINCT values are collected, and sessions have another key beside the session, which
    must not be a constant.
    """
    keys, window = plans.items(aggregate.groupingExpressions()), _window_key(aggregate)
    if len(keys) == 1 and window is not None and plans.is_session(window):
        start = bridge.call("unix_seconds", [bridge.field(window, 0)], window)
        keys.append(bridge.call("*", [start, bridge.expression("0")], window))
    return bridge.aggregate(keys, count_sets(bridge, plans.items(aggregate.aggregateExpressions())), plans.children(aggregate)[0])


def with_columns_of(bridge: Bridge, like: Plan, rows: Plan, names: Iterable[str]) -> Plan:
    """Rows whose columns have the identities of another plan's, by their place."""
    columns = zip(plans.items(rows.output()), plans.items(like.output()), names, strict=True)
    return bridge.project([bridge.alias(own, name, wanted.exprId()) for own, wanted, name in columns], rows)


def kind_of_window(aggregate: Plan) -> str:
    """What the windows of an aggregate are: equal for windows that close in the same epochs. These have the same length, step and origin,
    on any column, and are computed from inputs that do not hold rows back themselves.
    """
    window = _window_key(aggregate)
    assert window is not None
    word = "session" if plans.is_session(window) else "window"
    made = sorted({_text(each, word) for each in _definitions(plans.expr_id(window), plans.children(aggregate)[0])})
    held = sorted({name for name, below in _inputs(aggregate) if plans.keeps_state(below)})
    return " ".join([word, *made, *(f"over {name}" for name in held)])


def has_watermark(aggregate: Plan) -> bool:
    """Whether Spark knows when the windows of an aggregate close."""
    window = _window_key(aggregate)
    return window is not None and plans.has_watermark(window)


def reads_inputs(plan: Plan) -> bool:
    """Whether a plan still reads an input itself."""
    inner = [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]
    return bool(plans.input_name(plan)) or any(map(reads_inputs, inner))


def _window_key(node: Plan) -> Expression | None:
    """The window that an aggregate is grouped by."""
    keys = plans.items(node.groupingExpressions()) if plans.kind(node) == "Aggregate" else []
    return next((key for key in keys if plans.kind(key) == "AttributeReference" and plans.is_window(key)), None)


def _inputs(plan: Plan) -> Iterator[tuple[str, Plan]]:
    if name := plans.input_name(plan):
        yield name, plan
        return
    for child in plans.children(plan):
        yield from _inputs(child)


def _definitions(column: int, plan: Plan) -> Iterator[Expression]:
    """The expressions that a column is computed by: a sliding window has several, and so has one of united rows."""
    children = plans.children(plan)
    if plans.kind(plan) == "Union":
        place = plans.ids(plan).index(column)
        for child in children:
            yield from _definitions(plans.ids(child)[place], child)
        return
    for item in _computing(column, plan):
        inner = plans.without_alias(item)
        if plans.kind(inner) != "AttributeReference":
            yield inner
        elif children and (plans.kind(item) == "Alias" or plans.expr_id(inner) in plans.ids(children[0])):
            yield from _definitions(plans.expr_id(inner), children[0])


def _computing(column: int, plan: Plan) -> list[Expression]:
    """The items of a node that give a column."""
    kind = plans.kind(plan)
    if kind == "Project":
        return [item for item in plans.items(plan.projectList()) if plans.expr_id(item) == column]
    if kind == "Expand" and column not in plans.ids(plans.children(plan)[0]):
        place = plans.ids(plan).index(column)
        return [plans.items(copy)[place] for copy in plans.items(plan.projections())]
    return [attribute for attribute in plans.items(plan.output()) if plans.expr_id(attribute) == column]


def _text(expression: Expression, word: str) -> str:
    """An expression without the column that it is computed from."""
    kind = plans.kind(expression)
    if kind == "AttributeReference" or (word == "window" and kind == "PreciseTimestampConversion" and _to_number(expression)):
        return "time"
    if kind == "Literal":
        return str(expression.toString())
    return f"{kind}({', '.join(_text(child, word) for child in plans.children(expression))})"


def _to_number(conversion: Expression) -> bool:
    return str(conversion.dataType().catalogString()) == "bigint"
