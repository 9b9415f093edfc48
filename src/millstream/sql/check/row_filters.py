"""Checks the filter of somebody who watches the rows of a node: an expression as a `filter` node has it, which reads one row and nothing
else.

Whoever may watch rows may not read other data, nor call code of the process: no subqueries, and no calls of Java.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millstream.errors import Diagnostic
from millstream.plan.components import Problem
from millstream.sql.check.expressions import expression_fault, row_problems
from millstream.sql.check.query import parse_query, place_between, tokens_of
from millstream.sql.check.syntax import Fault

_REACHING_OUT = {"REFLECT", "TRY_REFLECT", "JAVA_METHOD"}
_LONGEST = 2_000
"""Characters."""


def refuse_filter(text: str, schema: pa.Schema | None) -> Diagnostic | None:
    """Why an expression cannot filter rows with this schema; None when it can, as far as that is known without Spark."""
    if len(text) > _LONGEST:
        return _refusal("MS027", f"the filter is longer than {_LONGEST:,} characters")
    if fault := expression_fault(text):
        return _not_an_expression(text, fault)
    if reason := _reaches_out(text):
        return _refusal("MS030", f"a filter of rows reads one row, and {reason}", help="filter by the columns of the node")
    found = row_problems([("", text)], schema)
    return _of_problem(text, found[0]) if found else None


def _reaches_out(text: str) -> str:
    words = {token.text.upper() for token in tokens_of(text)} & _REACHING_OUT
    if words:
        return f"`{min(words).lower()}` calls Java"
    tree = parse_query(f"SELECT {text} AS value").tree
    own = tree is not None and (any(tree.find_all(exp.Table, exp.Values)) or len(list(tree.find_all(exp.Query))) > 1)
    return "this one has a query of its own" if own else ""


def _not_an_expression(text: str, fault: Fault) -> Diagnostic:
    at = place_between(text, fault.start, fault.end)
    detail = _marked(text, at.line, at.column, fault.end - fault.start) if fault.end else ""
    return _refusal("MS027", f"the filter is not an expression: {fault.reason}", detail, fault.help)


def _of_problem(text: str, problem: Problem) -> Diagnostic:
    detail = _marked(text, problem.line, problem.column, problem.width) if problem.line else ""
    help_ = "filter by the columns of the node" if problem.code == "MS030" else problem.help
    return _refusal(problem.code, f"the filter: {problem.message}", detail, help_)


def _marked(text: str, line: int, column: int, width: int) -> str:
    """The line with the mistake, and a caret below it. It travels with the message, as it has no file."""
    shown = text.splitlines()[line - 1] if line <= len(text.splitlines()) else text
    return f"{shown}\n{' ' * (column - 1)}{'^' * max(1, width)}"


def _refusal(code: str, message: str, detail: str = "", help: str = "") -> Diagnostic:
    return Diagnostic(code, message, detail=detail, help=help)
