"""Maps Spark's errors about a query, or about a row that a query fails on, to a place in the pipeline."""

from __future__ import annotations

from millstream.engine.failures.scene import Scene
from millstream.engine.failures.text import CONDITION, first_line, sentence_of
from millstream.errors import Diagnostic

_ROW_CONDITIONS = {
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
    "INTERVAL_DIVIDED_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
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


_NO_EVENT_TIME = "a window must use the column that `event_time` names, unchanged: not another column, and not a value computed from it"


def failed_row(text: str, scene: Scene) -> Diagnostic | None:
    """A row on which an expression failed."""
    condition = CONDITION.search(text)
    if condition is None or not (condition[1].split(".")[0] in _ROW_CONDITIONS or condition[1].startswith(_ROW_PREFIXES)):
        return None
    if condition[1].startswith(_ABOUT_THE_TEXT) or "AnalysisException" in text:
        return None
    node = scene.author
    name = f"`{node.name}`" if node else f"a node above `{scene.where}`"
    help_ = "the `try_` form of the function gives null instead; or `on_error: drop` or `{dead_letter: SINK}`"
    message = f"{name} failed on a row: {sentence_of(text, condition)}"
    return Diagnostic("MS067", message, scene.sql_place, help=help_, node=node.name if node else "", cause=condition[1])


def rejected_plan(text: str, scene: Scene) -> Diagnostic | None:
    """A query that Spark cannot analyse."""
    condition = CONDITION.search(text)
    constant = condition is not None and condition[1].startswith("INVALID_INTERVAL_FORMAT")
    if not constant and "AnalysisException" not in text and "ParseException" not in text:
        return None
    sentence = sentence_of(text, condition) if condition else first_line(text).removeprefix("AnalysisException: ")
    node = scene.author or scene.current
    name = f"`{node.name}`" if node else "the plan"
    help_ = _NO_EVENT_TIME if condition is not None and condition[1].startswith("STREAMING_OUTPUT_MODE") else ""
    place = scene.sql_place or (node.span if node else None)
    cause = condition[1] if condition else ""
    return Diagnostic("MS066", f"Spark rejects {name}: {sentence}", place, help=help_, node=node.name if node else "", cause=cause)
