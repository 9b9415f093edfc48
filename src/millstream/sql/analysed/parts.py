"""Cuts what Spark's stream can compute out of a query, in its analysed plan: windowed aggregates, and joins within a time.

All groups of a window leave an aggregate in the same epoch, complete and once. So each windowed aggregate becomes a part of its own, and a
leaf in what is left. The rest runs on the rows of one epoch if it works window by window, and is kept up to date otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from millstream.sql.analysed import plans
from millstream.sql.analysed.gate import PLAIN
from millstream.sql.analysed.plans import Expression, Plan
from millstream.sql.catalyst.aggregates import count_sets
from millstream.sql.catalyst.bridge import Bridge

_GROUPING = {"Aggregate", "Distinct", "Deduplicate", "Intersect", "Except"}
"""Steps that group rows by all or some of their columns."""
_PLAIN = {*PLAIN, "Project", "Expand", "Generate", "Union", "Join", "LogicalRDD"}


@dataclass(frozen=True, slots=True)
class Cut:
    """A query in two: what Spark's stream computes, and what is computed from its rows."""

    parts: tuple[Plan, ...]
    """What Spark's stream computes."""
    rest: Plan
    """The query, with leaves in their place."""
    leaves: tuple[tuple[Plan, int], ...]
    """The leaves, each with the number of its part. A part that the query reads twice has two leaves."""

    def over(self, bridge: Bridge, rows: Sequence[Plan]) -> Plan:
        """The rest, over the rows of the parts. Columns are found by their place."""
        found = [(leaf, with_columns_of(bridge, leaf, rows[number], plans.names(self.parts[number]))) for leaf, number in self.leaves]
        return bridge.replaced_everywhere(self.rest, found)


def cut(bridge: Bridge, plan: Plan, steps: Iterable[Plan]) -> Cut:
    """Cut steps out of a plan. Spark numbers the states of a query by their order, so it must not change from run to run."""
    parts: list[Plan] = []
    leaves: list[tuple[Plan, int]] = []
    pairs: list[tuple[Plan, Plan]] = []
    for step in steps:
        part = _with_each_column_once(bridge, step)
        number = next((index for index, known in enumerate(parts) if known.sameResult(part)), len(parts))
        parts += [part] if number == len(parts) else []
        places = enumerate(plans.items(part.output()))
        columns = [bridge.alias(each, f"c{place}", each.exprId(), is_session=False).toAttribute() for place, each in places]
        leaf = bridge.leaf(bridge.seq(columns), bridge.empty_rdd())
        leaves.append((leaf, number))
        pairs.append((step, leaf))
    return Cut(tuple(parts), bridge.replaced_everywhere(plan, pairs), tuple(leaves))


def place_of(step: Plan) -> tuple[int, int]:
    """The place of a step in its text: line and column."""
    found = plans.step_origin(step)
    return (found.line, found.column) if found else (0, 0)


def _with_each_column_once(bridge: Bridge, aggregate: Plan) -> Plan:
    """An aggregate without the repetitions of `SELECT k, k`; other steps as they are."""
    items = plans.items(aggregate.aggregateExpressions()) if plans.kind(aggregate) == "Aggregate" else []
    if not items:
        return aggregate
    once = list({plans.expr_id(item): item for item in items}.values())
    keys = plans.items(aggregate.groupingExpressions())
    return bridge.aggregate(keys, once, plans.children(aggregate)[0]) if len(once) < len(items) else aggregate


def windowed_aggregates(plan: Plan) -> list[Plan]:
    """The lowest aggregates by a window, also in subqueries, down to the inputs."""
    if plans.input_name(plan):
        return []
    inner = [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]
    below = [found for child in inner for found in windowed_aggregates(child)]
    return below or ([plan] if window_key(plan) is not None else [])


def streamable(bridge: Bridge, plan: Plan, accepts: Callable[[Plan], bool]) -> list[Plan]:
    """The highest steps of a plan that Spark's stream can compute and then forget, if `accepts` agrees: aggregates by windows that the
    watermark closes, joins of rows within a time of each other, and such aggregates over such joins.
    """
    if _may_stream(plan) and _is_bounded(bridge, plan) and accepts(plan):
        return [plan]
    inner = [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]
    return [found for child in inner for found in streamable(bridge, child, accepts)]


def without_merged_sessions(plan: Plan, found: list[Plan]) -> list[Plan]:
    """Steps without those by sessions, if sessions are grouped once more above them: Spark merges those that overlap, and they may close in
    different epochs.
    """
    if not any(_merges_sessions(node) for node in _above(plan, found)):
        return found
    return [step for step in found if not any(map(plans.is_session, plans.items(step.output())))]


def _above(plan: Plan, steps: list[Plan]) -> Iterator[Plan]:
    """The nodes of a plan and its subqueries, down to these steps."""
    if any(plan is step or plan.fastEquals(step) for step in steps):
        return
    yield plan
    for child in [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]:
        yield from _above(child, steps)


def _merges_sessions(node: Plan) -> bool:
    kind = plans.kind(node)
    keys = plans.items(node.groupingExpressions() if kind == "Aggregate" else node.output()) if kind in _GROUPING else []
    return any(plans.kind(key) in {"AttributeReference", "Alias"} and plans.is_session(key) for key in keys)


def _may_stream(plan: Plan) -> bool:
    """Whether it is a step with state; a join may have its condition in a WHERE above it."""
    kind = plans.kind(plan)
    return kind in {"Aggregate", "Join"} or (kind == "Filter" and plans.kind(plans.children(plan)[0]) == "Join")


def _is_bounded(bridge: Bridge, plan: Plan) -> bool:
    """Whether the watermark bounds the state of all steps of a plan, and they need no rows from elsewhere."""
    rows = plans.children(plan)[0] if has_watermark(plan) else plan
    if not all(map(_is_plain, _nodes(rows))) or _reads_outside(plan) or _lacks_window(plan) or _groups_by_map(plan):
        return False
    joins = [node for node in _nodes(bridge.optimised(plan)) if plans.kind(node) == "Join"]
    return all(map(bridge.bounds_state, joins))


def _reads_outside(plan: Plan) -> bool:
    """Whether a plan has subqueries, or columns of an outer query."""
    outer = any(plans.kind(each) == "OuterReference" for each in plans.own_expressions(plan))
    return outer or any(node.subqueries().size() for node in _nodes(plan))


def _lacks_window(plan: Plan) -> bool:
    """Whether groups of an aggregate have no window, as GROUPING SETS make them: they never close."""
    window = window_key(plan)
    return window is not None and any(
        plans.kind(each) == "Literal" for each in _definitions(plans.expr_id(window), plans.children(plan)[0])
    )


def _is_plain(node: Plan) -> bool:
    """A step that a stream computes. Spark's state compares the bytes of strings, and a collation does not."""
    known = plans.kind(node) in _PLAIN and not node.subqueries().size()
    return known and not any(map(plans.is_collated, plans.items(node.output())))


def _groups_by_map(node: Plan) -> bool:
    return plans.kind(node) == "Aggregate" and any(map(plans.has_maps, plans.items(node.groupingExpressions())))


def _nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plans.children(plan):
        yield from _nodes(child)


def streamed(bridge: Bridge, plan: Plan) -> Plan:
    """A part as Spark's stream can run it."""
    return bridge.replaced(plan, [(each, _streamed(bridge, each)) for each in windowed_aggregates(plan)])


def _streamed(bridge: Bridge, aggregate: Plan) -> Plan:
    """An aggregate as Spark's stream can run it: DISTINCT values are collected, and sessions have another key beside the session, which
    must not be a constant.
    """
    keys, window = plans.items(aggregate.groupingExpressions()), window_key(aggregate)
    if len(keys) == 1 and window is not None and plans.is_session(window):
        start = bridge.call("unix_seconds", [bridge.field(window, 0)], window)
        keys.append(bridge.call("*", [start, bridge.expression("0")], window))
    return bridge.aggregate(keys, count_sets(bridge, plans.items(aggregate.aggregateExpressions())), plans.children(aggregate)[0])


def with_columns_of(bridge: Bridge, like: Plan, rows: Plan, names: Iterable[str]) -> Plan:
    """Rows whose columns have the identities of another plan's, by their place."""
    columns = zip(plans.items(rows.output()), plans.items(like.output()), names, strict=True)
    return bridge.project([bridge.alias(own, name, wanted.exprId()) for own, wanted, name in columns], rows)


def closes_windows(plan: Plan) -> bool:
    """Whether a part is one aggregate by window, over rows and not over the results of other steps with state."""
    return window_key(plan) is not None and [node for node in _nodes(plan) if plans.kind(node) in {"Aggregate", "Join"}] == [plan]


def kind_of_window(aggregate: Plan) -> str:
    """What the windows of an aggregate are: equal for windows that close in the same epochs. These have the same length, step and origin,
    on any column, and are computed from inputs that do not hold rows back themselves.
    """
    window = window_key(aggregate)
    assert window is not None
    word = "session" if plans.is_session(window) else "window"
    made = sorted({_text(each, word) for each in _definitions(plans.expr_id(window), plans.children(aggregate)[0])})
    held = sorted({name for name, below in _inputs(aggregate) if plans.keeps_state(below)})
    return " ".join([word, *made, *(f"over {name}" for name in held)])


def closes_by_inputs(aggregate: Plan) -> bool:
    """Whether the watermark of the inputs closes the windows of an aggregate: no step below holds rows back."""
    return not any(map(plans.keeps_state, plans.children(aggregate)))


def length_of_windows(aggregate: Plan) -> int | None:
    """The length of all windows of an aggregate in microseconds; None if they differ, as sessions do."""
    window = window_key(aggregate)
    if window is None or plans.is_session(window):
        return None
    found = {_length(each) for each in _definitions(plans.expr_id(window), plans.children(aggregate)[0], columns=True)}
    return found.pop() if len(found) == 1 else None


def _length(window: Expression) -> int | None:
    """The length of a window, which Spark computes as its start and `start + length`."""
    edges = plans.children(window)[1::2] if plans.kind(window) == "CreateNamedStruct" else []
    if len(edges) != 2:
        return None
    start, end = (_number_of(edge) for edge in edges)
    if plans.kind(end) != "Add" or not plans.children(end)[0].semanticEquals(start):
        return None
    length = plans.children(end)[1]
    return int(length.value()) if plans.kind(length) == "Literal" else None


def _number_of(edge: Expression) -> Expression:
    """An edge of a window in microseconds."""
    while plans.kind(edge) in {"KnownNullable", "PreciseTimestampConversion"}:
        edge = plans.children(edge)[0]
    return edge


def has_watermark(aggregate: Plan) -> bool:
    """Whether Spark knows when the windows of an aggregate close."""
    window = window_key(aggregate)
    return window is not None and plans.has_watermark(window)


def reads_inputs(plan: Plan) -> bool:
    """Whether a plan still reads an input itself."""
    inner = [*plans.children(plan), *(subquery for _, subquery in plans.subqueries(plan))]
    return bool(plans.input_name(plan)) or any(map(reads_inputs, inner))


def window_key(node: Plan) -> Expression | None:
    """The window that an aggregate is grouped by."""
    keys = plans.items(node.groupingExpressions()) if plans.kind(node) == "Aggregate" else []
    return next((key for key in keys if plans.kind(key) == "AttributeReference" and plans.is_window(key)), None)


def _inputs(plan: Plan) -> Iterator[tuple[str, Plan]]:
    if name := plans.input_name(plan):
        yield name, plan
        return
    for child in plans.children(plan):
        yield from _inputs(child)


def _definitions(column: int, plan: Plan, *, columns: bool = False) -> Iterator[Expression]:
    """The expressions that a column is computed by: a sliding window has several, and so has one of united rows. With `columns`, also the
    columns of inputs that it is as they are.
    """
    children = plans.children(plan)
    if plans.kind(plan) == "Union":
        place = plans.ids(plan).index(column)
        for child in children:
            yield from _definitions(plans.ids(child)[place], child, columns=columns)
        return
    for item in _computing(column, plan):
        inner = plans.without_alias(item)
        if plans.kind(inner) != "AttributeReference":
            yield inner
        elif children and (plans.kind(item) == "Alias" or plans.expr_id(inner) in plans.ids(children[0])):
            yield from _definitions(plans.expr_id(inner), children[0], columns=columns)
        elif columns:
            yield inner


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
