"""Reads Spark's analysed plan through py4j. No other module knows the names of its nodes and fields.

A plan is read once per node and run; one call takes about 0.05 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.sql.catalyst.bridge import SESSION, WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Plan = Any
"""A logical plan on the JVM."""
Expression = Any
"""An expression on the JVM."""

INPUT = "_millstream"
"""The prefix of a node's input names: a SQL view, or the alias that the engine gives to a frame."""
_FLOATS = re.compile(r"\b(double|float)\b(?!:)")
_MARKERS = ("spark.timeWindow", SESSION)
_STATEFUL = {
    "Aggregate",
    "Join",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
}
_SUBQUERIES = {"ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"}


def analysed_plan(frame: DataFrame) -> Plan:
    """The plan after Spark's analyser, with common table expressions inlined."""
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    return jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False).apply(frame._jdf.queryExecution().analyzed())


def keeps_state(plan: Plan) -> bool:
    """Whether a plan has a stateful operator: results computed from its rows may close later."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if kind(node) in _STATEFUL:
            return True
        waiting += children(node)
    return False


def kind(node: Plan | Expression) -> str:
    return str(node.getClass().getSimpleName())


def children(node: Plan | Expression) -> list[Any]:
    return items(node.children())


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(index) for index in range(sequence.size())]


def ids(node: Plan) -> list[int]:
    """The ids of a node's columns."""
    return [expr_id(attribute) for attribute in items(node.output())]


def without_alias(item: Expression) -> Expression:
    return item.child() if kind(item) == "Alias" else item


def names(node: Plan) -> list[str]:
    return [str(attribute.name()) for attribute in items(node.output())]


def expr_id(attribute: Expression) -> int:
    return int(attribute.exprId().id())


def input_name(node: Plan) -> str:
    """The input that a node represents; empty for a step of the query itself."""
    name = str(node.identifier().name()) if kind(node) == "SubqueryAlias" else ""
    return name if name.startswith(INPUT) else ""


def project(project: Plan, held: list[set[int]]) -> list[set[int]]:
    """Sets of columns, each extended by the columns of a projection that have the same values."""
    for item in items(project.projectList()):
        inner = without_alias(item)
        source = expr_id(inner) if kind(inner) == "AttributeReference" else None
        held = [columns | {expr_id(item)} if source in columns else columns for columns in held]
    return held


def looks_up(generate: Plan) -> bool:
    """Whether a lateral view is a join with a dynamic table, which has at most one row per key."""
    asked = children(generate.generator())
    return bool(asked) and kind(asked[0]) == "PythonUDF" and str(asked[0].name()).startswith(INPUT)


def is_session(attribute: Expression) -> bool:
    return bool(attribute.metadata().contains(SESSION))


def has_watermark(attribute: Expression) -> bool:
    """Whether Spark knows a watermark for a column."""
    return bool(attribute.metadata().contains(WATERMARK))


def is_window(attribute: Expression) -> bool:
    """Whether Spark has marked a column as an event-time window."""
    metadata = attribute.metadata()
    return any(metadata.contains(marker) for marker in _MARKERS)


def own_expressions(node: Plan) -> Iterator[Expression]:
    """All expressions of a plan down to its inputs."""
    if input_name(node):
        return
    waiting = items(node.expressions())
    while waiting:
        expression = waiting.pop()
        yield expression
        waiting += children(expression)
    for child in children(node):
        yield from own_expressions(child)


def is_deterministic(frame: DataFrame) -> bool:
    """Whether Spark calls all expressions of a node deterministic, down to its inputs."""
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        if input_name(node):
            continue
        if not all(expression.deterministic() for expression in items(node.expressions())):
            return False
        waiting += children(node)
    return True


def has_nested_floats(expression: Expression) -> bool:
    """Whether an expression returns structs or arrays with floating-point numbers."""
    text = str(expression.dataType().catalogString())
    return text not in {"double", "float"} and bool(_FLOATS.search(text))


def has_maps(expression: Expression) -> bool:
    return "map<" in str(expression.dataType().catalogString())


def is_collated(expression: Expression) -> bool:
    return " collate " in str(expression.dataType().catalogString()).lower()


def subqueries(node: Plan) -> Iterator[tuple[Expression, Plan]]:
    """The subqueries in a node's expressions."""
    for expression in items(node.expressions()) if node.subqueries().size() else ():
        yield from _subqueries(expression)


def _subqueries(expression: Expression) -> Iterator[tuple[Expression, Plan]]:
    if kind(expression) in _SUBQUERIES:
        yield expression, expression.plan()
    for child in children(expression):
        yield from _subqueries(child)


@dataclass(frozen=True, slots=True)
class Origin:
    """A position in a text that Spark has parsed: line and column from 1."""

    line: int
    column: int
    text: str

    def within(self, text: str) -> tuple[int, int] | None:
        """Line and column in the user's text, if both are the same up to there."""
        lines, before = text.splitlines(), self.text.splitlines()[self.line - 1][: self.column - 1]
        if self.line > len(lines):
            return None
        return (self.line, self.column) if lines[self.line - 1].startswith(before) else None


def step_origin(step: Plan) -> Origin | None:
    """The position of a step: its own, or the first one of its expressions. Spark's copy of a definition that is used twice has none."""
    waiting = items(step.expressions())
    inner = [found for each in waiting for found in _origins(each)]
    return origin(step) or min(inner, key=lambda each: (each.line, each.column), default=None)


def _origins(expression: Expression) -> Iterator[Origin]:
    if found := origin(expression):
        yield found
    for child in children(expression):
        yield from _origins(child)


def origin(node: Plan | Expression) -> Origin | None:
    found = node.origin()
    if not (found.line().isDefined() and found.startPosition().isDefined() and found.sqlText().isDefined()):
        return None
    line, column = int(found.line().get()), int(found.startPosition().get())
    return Origin(line, column + 1, str(found.sqlText().get()))
