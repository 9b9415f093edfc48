"""Finds queries with too many or too few columns: in UNION, INTERSECT and EXCEPT, in the place of a value, and after IN.

A query whose number of columns is not in its text (`*`, `VALUES`, functions that return several columns) is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millstream.plan.components import TextPlace
from millstream.sql.check.changelog import names_op
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, place_of
from millstream.sql.check.scalar_subqueries import is_value
from millstream.sql.check.selected_items import items_of, may_be_several


def find_uneven(query: Query) -> Iterator[SqlFinding]:
    """Queries whose number of columns is not the one that is needed."""
    for node in query.tree.walk() if query.tree is not None else ():
        if isinstance(node, exp.SetOperation) and not node.args.get("by_name") and not names_op(query.text):
            yield from _combined(query, node)
        elif isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Subquery):
            yield from _compared(query, node, node.args["query"])
        elif is_value(node) and (width := _width(query, node) or 1) > 1:
            help_ = "select one column; several values need several subqueries, or one `struct(…)`"
            message = f"a subquery that stands for one value has {width} columns"
            yield SqlFinding("MS181", message, help_, _place(query, node, 1))


def _combined(query: Query, node: exp.SetOperation) -> Iterator[SqlFinding]:
    left, right = _width(query, node.left), _width(query, node.right)
    if left and right and left != right:
        message = f"the queries that {node.key.upper()} combines have {_columns(left)} and {_columns(right)}"
        help_ = "select as many in both; `NULL AS name` can stand for one that is missing"
        yield SqlFinding("MS181", message, help_, _place(query, node.right, 0))


def _compared(query: Query, node: exp.In, inner: exp.Subquery) -> Iterator[SqlFinding]:
    value = node.this.unnest()
    values = len(value.expressions) if isinstance(value, exp.Tuple) else 1 if isinstance(value, exp.Column | exp.Literal) else 0
    width = _width(query, inner)
    if values and width and values != width:
        message = f"IN compares {values} value{'s' * (values > 1)} with {_columns(width)}"
        help_ = "select one column for each value: `a IN (SELECT b …)`, `(a, b) IN (SELECT c, d …)`"
        yield SqlFinding("MS181", message, help_, _place(query, inner, 0))


def _width(query: Query, node: exp.Expr) -> int | None:
    """The number of columns of a query; None if it is not certain."""
    items = items_of(node)
    return None if not items or any(may_be_several(query.text, item) for item in items) else len(items)


def _place(query: Query, node: exp.Expr, index: int) -> TextPlace | None:
    return place_of(query.text, items_of(node)[index]) or place_of(query.text, node)


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"
