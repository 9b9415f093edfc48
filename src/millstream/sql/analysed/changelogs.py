"""The effect of a query on a changelog, from Spark's analysed plan: which columns still contain the key, and whether one row stays one
row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.analysed import plans
from millstream.sql.analysed.gate import PLAIN, PYTHON, Refusal
from millstream.sql.analysed.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STEPS = {"Generate": "LATERAL VIEW, explode() or JOIN with a table", "LateralJoin": "LATERAL", "Join": "a join"}
_NO_WAY_BACK = "and an update could not retract the rows of the old row; use `_op` in the query to handle updates yourself"


def key_in_result(frame: DataFrame, key: tuple[str, ...]) -> tuple[str, ...]:
    """The key of a node's input under its column names in the result. Empty when one of them is removed or computed (`upper(k) AS k` is
    another column than `k`), or when rows of the result are not rows of the input.
    """
    plan = plans.analysed_plan(frame)
    held = _key_columns(plan, key)
    names = dict(zip(plans.ids(plan), plans.names(plan), strict=True))
    shown = [[names[column] for column in columns if column in names] for columns in held]
    return tuple(name if name in found else found[0] for name, found in zip(key, shown, strict=True)) if held and all(shown) else ()


def _key_columns(node: Plan, key: tuple[str, ...]) -> list[set[int]]:
    """The columns that contain each part of the key; empty when unknown. A Python function keeps columns by name."""
    kind = plans.kind(node)
    if plans.input_name(node) or kind in PYTHON:
        columns = dict(zip(plans.names(node), plans.ids(node), strict=True))
        return [{columns[name]} for name in key] if all(name in columns for name in key) else []
    if kind in PLAIN or _adds_columns(node):
        return _key_columns(plans.children(node)[0], key)
    return plans.project(node, _key_columns(plans.children(node)[0], key)) if kind == "Project" else []


def find_multiplying_step(frame: DataFrame) -> Refusal | None:
    """The step that turns one row of a changelog into several rows or none: an update could not retract the rows of the old row."""
    waiting = [plans.analysed_plan(frame)]
    while waiting:
        node = waiting.pop()
        kind = plans.kind(node)
        if plans.input_name(node) or kind in PYTHON:
            continue
        if kind in _STEPS and not _adds_columns(node):
            return Refusal(f"{_STEPS[kind]} can make several rows of one row of a changelog, or none, {_NO_WAY_BACK}", plans.origin(node))
        waiting += plans.children(node)
    return None


def _adds_columns(node: Plan) -> bool:
    """Whether a step is a LEFT JOIN with a dynamic table: every row stays one row."""
    return plans.kind(node) == "Generate" and bool(node.outer()) and plans.looks_up(node)
