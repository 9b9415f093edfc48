"""The windows that the rows of an input belong to, in the plan of a stream.

Rows are followed from the input up to the aggregates by window, through every step that handles them one by one. Each one has a copy of the
row and its place in the input beside its own columns, so that a result says which row it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.sql.analysed import parts, plans
from millstream.sql.analysed.gate import PLAIN
from millstream.sql.analysed.plans import Expression, Plan
from millstream.sql.catalyst.bridge import Bridge

ROW, PLACE, CLOSES = "_row", "_place", "_closes"
_FOLLOWED = {*PLAIN, "Project", "Expand", "Generate", "Union"}
_END = 1
"""The field of a window that has its end."""


@dataclass(frozen=True, slots=True)
class _Path:
    """The steps from an input up to an aggregate by window."""

    source: Plan
    steps: tuple[Plan, ...]
    window: Expression


def windows_of(bridge: Bridge, plan: Plan, alias: str) -> list[Plan] | None:
    """For each aggregate by window over an input, which has this alias: the windows of the input's rows, with the row, its place, and when
    the window closes. None if rows cannot be followed, as through a join of streams.
    """
    paths = _paths(plan, alias)
    return None if paths is None else [_rows(bridge, path) for path in paths]


def can_follow(plan: Plan, alias: str) -> bool:
    """Whether `windows_of` finds the windows of all rows."""
    return _paths(plan, alias) is not None


def _paths(plan: Plan, alias: str) -> list[_Path] | None:
    """The ways to the aggregates; None if one of them has another step that needs several rows."""
    found = []
    for source, *steps in _ways(plan, alias):
        place = next((place for place, step in enumerate(steps) if not _handles_one_row(step)), None)
        if place is None:
            continue  # the rows are read as they are
        window = parts.window_key(steps[place])
        if window is None:
            return None
        found.append(_Path(source, tuple(steps[:place]), window))
    return found


def _handles_one_row(step: Plan) -> bool:
    """Whether a step handles the rows of a stream one by one, as a join with a fixed table does."""
    if plans.kind(step) not in {"Join", "LateralJoin"}:
        return plans.kind(step) in _FOLLOWED
    sides = [*plans.children(step), *(subquery for _, subquery in plans.subqueries(step))]
    return sum(bool(side.isStreaming()) for side in sides) == 1


def _ways(node: Plan, alias: str) -> Iterator[list[Plan]]:
    """The nodes from each occurrence of an input up to the top of a plan."""
    if plans.kind(node) == "SubqueryAlias" and str(node.alias()) == alias:
        yield [node]
        return
    for child in plans.children(node):
        for way in _ways(child, alias):
            yield [*way, node]


def _rows(bridge: Bridge, path: _Path) -> Plan:
    columns = plans.items(path.source.output())
    row = bridge.alias(bridge.struct(columns), ROW)
    place = bridge.alias(bridge.make("MonotonicallyIncreasingID"), PLACE)
    plan, below = bridge.project([*columns, row, place], path.source), path.source
    carried = [row.toAttribute(), place.toAttribute()]
    for step in path.steps:
        plan, below = _over(bridge, step, below, plan, carried), step
    return bridge.project([*carried, bridge.alias(bridge.field(path.window, _END), CLOSES)], plan)


def _over(bridge: Bridge, step: Plan, below: Plan, rows: Plan, carried: list[Expression]) -> Plan:
    """A step over rows with more columns than those below it have."""
    kind = plans.kind(step)
    if kind == "Project":
        return bridge.project([*plans.items(step.projectList()), *carried], rows)
    if kind == "Expand":
        copies = [[*plans.items(copy), *carried] for copy in plans.items(step.projections())]
        return bridge.expand(copies, [*plans.items(step.output()), *carried], rows)
    if kind == "Union":
        pairs = zip(plans.items(below.output()), plans.items(step.output()), strict=True)
        return bridge.project([*(bridge.alias(own, str(to.name()), to.exprId()) for own, to in pairs), *carried], rows)
    return bridge.with_children(step, [rows if child.fastEquals(below) else child for child in plans.children(step)])
