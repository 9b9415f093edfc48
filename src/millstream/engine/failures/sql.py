"""Maps Spark's errors about a query, or about a row that a query fails on, to a place in the pipeline."""

from __future__ import annotations

from millstream.engine.failures.scene import Scene
from millstream.engine.failures.text import CONDITION, first_line, sentence_of
from millstream.errors import Diagnostic
from millstream.plan.nodes import TransformNode
from millstream.sql.own_functions import OWN_FUNCTIONS

_ROW_CONDITIONS = {
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
    "INTERVAL_DIVIDED_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CONVERSION_INVALID_INPUT",
    "USER_RAISED_EXCEPTION",
}
_ROW_PREFIXES = (
    "CAST_",
    "INVALID_ARRAY_INDEX",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "CANNOT_PARSE_",
    "CANNOT_CHANGE_",
    "DATETIME_",
    "MAP_KEY",
    "INVALID_",
)


_ABOUT_THE_TEXT = ("INVALID_SUBQUERY", "INVALID_INTERVAL_FORMAT", "INVALID_EXTRACT")
"""Error conditions that concern the query itself, and not a row of its input."""


_HELP = {
    "STREAMING_OUTPUT_MODE": "a window must use the column that `event_time` names, unchanged: not another column, and not a value "
    "computed from it",
    "INVALID_WHERE_CONDITION": "a condition on an aggregate comes after GROUP BY: `HAVING …`",
}
"""Advice by the beginning of Spark's name of an error."""


def failed_row(text: str, scene: Scene) -> Diagnostic | None:
    """A row on which an expression failed."""
    condition = CONDITION.search(text)
    if condition is None or not (condition[1].split(".")[0] in _ROW_CONDITIONS or condition[1].startswith(_ROW_PREFIXES)):
        return None
    if condition[1].startswith(_ABOUT_THE_TEXT) or "AnalysisException" in text:
        return None
    node, place = scene.author, scene.sql_place
    function = OWN_FUNCTIONS.get(sentence_of(text, condition).partition(":")[0])
    if node is None and function is not None:  # Spark knows no place for a failure of Java
        node, place = scene.call_of(function.names) or (None, None)
    name = f"`{node.name}`" if node else f"a node above `{scene.where}`"
    kept = isinstance(node, TransformNode) and node.component.incremental
    other = "remove such rows in a node whose rows it reads" if kept else "`on_error: drop` or `{dead_letter: SINK}`"
    help_ = other if condition[1] == "USER_RAISED_EXCEPTION" else f"the `try_` form of the function gives null instead; or {other}"
    message = f"{name} failed on a row: {sentence_of(text, condition)}"
    return Diagnostic("MS067", message, place, help=help_, node=node.name if node else "", cause=condition[1])


def ambiguous_value(text: str, scene: Scene) -> Diagnostic | None:
    """A subquery in the place of a value that returned more than one row."""
    if "SCALAR_SUBQUERY_TOO_MANY_ROWS" not in text:
        return None
    node = scene.author or scene.current
    message = f"`{node.name if node else scene.where}`: a subquery that stands for one value returned more than one row"
    place = scene.sql_place or (node.place("sql") or node.span if node else None)
    return Diagnostic("MS067", message, place, help="use an aggregate such as `max(…)`, or LIMIT 1", node=node.name if node else "")


def rejected_plan(text: str, scene: Scene) -> Diagnostic | None:
    """A query that Spark cannot analyse."""
    condition = CONDITION.search(text)
    constant = condition is not None and condition[1].startswith("INVALID_INTERVAL_FORMAT")
    if not constant and "AnalysisException" not in text and "ParseException" not in text:
        return None
    sentence = sentence_of(text, condition) if condition else first_line(text).removeprefix("AnalysisException: ")
    node = scene.author or scene.current
    name = f"`{node.name}`" if node else "the plan"
    place = scene.sql_place or (node.span if node else None)
    cause = condition[1] if condition else ""
    help_ = next((advice for name, advice in _HELP.items() if cause.startswith(name)), "")
    return Diagnostic("MS066", f"Spark rejects {name}: {sentence}", place, help=help_, node=node.name if node else "", cause=cause)
