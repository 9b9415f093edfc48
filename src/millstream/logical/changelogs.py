"""What a query does to a changelog, by Spark's analysed plan: which columns still hold the key, and whether one row stays one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.logical import plans
from millstream.logical.gate import PLAIN, PYTHON, Refusal
from millstream.logical.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STEPS = {"Generate": "LATERAL VIEW, explode() or JOIN with a table", "LateralJoin": "LATERAL", "Join": "a join"}
_NO_WAY_BACK = "and an update could not take back what the old row had become; name `_op` in the query to say what becomes of updates"


def followed(frame: DataFrame, key: tuple[str, ...]) -> tuple[str, ...]:
    """The key of a node's input under the names that its columns have in the result. Nothing when one of them is left out or computed anew
    (`upper(k) AS k` is another column than `k`), or when rows of the result are not rows of the input.
    """
    plan = plans.analysed(frame)
    held = _held(plan, key)
    names = dict(zip(plans.ids(plan), plans.names(plan), strict=True))
    shown = [[names[column] for column in columns if column in names] for columns in held]
    return tuple(name if name in found else found[0] for name, found in zip(key, shown, strict=True)) if held and all(shown) else ()


def _held(node: Plan, key: tuple[str, ...]) -> list[set[int]]:
    """The columns that hold each part of the key; nothing when that cannot be told. A Python function keeps columns by their names."""
    kind = plans.kind(node)
    if plans.input_name(node) or kind in PYTHON:
        columns = dict(zip(plans.names(node), plans.ids(node), strict=True))
        return [{columns[name]} for name in key] if all(name in columns for name in key) else []
    if kind in PLAIN or _adds_columns(node):
        return _held(plans.children(node)[0], key)
    return plans.projected(node, _held(plans.children(node)[0], key)) if kind == "Project" else []


def multiplied(frame: DataFrame) -> Refusal | None:
    """Which step makes several rows, or none, of one row of a changelog: an update could not take back what the old row had become."""
    waiting = [plans.analysed(frame)]
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
