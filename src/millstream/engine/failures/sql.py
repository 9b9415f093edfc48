"""What Spark says about a query, and about a row that a query fails on, led back to the place in the pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.engine.failures.texts import CONDITION, first_line, named_node, sentence_of
from millstream.errors import Diagnostic, Span
from millstream.plan.nodes import Node
from millstream.plan.rules import text_place

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
"""Conditions about the query itself, and no row of its input."""


_NO_EVENT_TIME = "a window goes by the column that `event_time` names, as it is: not by another one, nor by a value computed from it"


def bad_row(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    condition = CONDITION.search(text)
    if condition is None or not (condition[1].split(".")[0] in _ROW_CONDITIONS or condition[1].startswith(_ROW_PREFIXES)):
        return None
    if condition[1].startswith(_ABOUT_THE_TEXT) or "AnalysisException" in text:
        return None
    node, place = _sql_place(text, nodes)
    name = f"`{node.name}`" if node else f"a node above `{where}`"
    help_ = "the `try_` form of the function gives null instead; or `on_error: drop` or `{dead_letter: SINK}`"
    return Diagnostic("MS067", f"{name} failed on a row: {sentence_of(text, condition)}", place, help=help_)


def rejected_plan(text: str, nodes: Sequence[Node], where: str) -> Diagnostic | None:
    condition = CONDITION.search(text)
    constant = condition is not None and condition[1].startswith("INVALID_INTERVAL_FORMAT")
    if not constant and "AnalysisException" not in text and "ParseException" not in text:
        return None
    sentence = sentence_of(text, condition) if condition else first_line(text).removeprefix("AnalysisException: ")
    node, place = _sql_place(text, nodes)
    node = node or named_node(nodes, where)
    name = f"`{node.name}`" if node else "the plan"
    help_ = _NO_EVENT_TIME if condition is not None and condition[1].startswith("STREAMING_OUTPUT_MODE") else ""
    return Diagnostic("MS066", f"Spark rejects {name}: {sentence}", place or (node.span if node else None), help=help_)


def _sql_place(text: str, nodes: Sequence[Node]) -> tuple[Node | None, Span | None]:
    """The query that Spark's own marks lead to: the fragment it quotes stands in one node's SQL."""
    quoted = re.search(r"== SQL[^\n]*==\n(.*?)\n\s*\^+", text, re.S)
    queries = [node for node in nodes if hasattr(node.component, "sql")]
    fragment = quoted[1].strip() if quoted else ""
    carets = re.search(r"== SQL[^\n]*==\n[^\n]*\n(\s*)(\^+)", text)
    word = quoted[1].splitlines()[0][len(carets[1]) : len(carets[1]) + len(carets[2])].strip() if quoted and carets else fragment
    for node in queries:
        sql: str = node.component.sql  # type: ignore[attr-defined]  # selected by hasattr above
        if word and word in sql:
            before = sql[: sql.index(word)]
            return node, text_place(
                node, "sql", before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, len(word.splitlines()[0])
            )
    return (queries[0], queries[0].place("sql")) if len(queries) == 1 else (None, None)
