"""Where the subqueries of a query stand that are in the place of a value and may return several rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp

from millstream.plan.components import TextPlace
from millstream.sql.check.calls import closing_of
from millstream.sql.check.query import Query, place_between, tokens_of
from millstream.sql.check.selects import aggregates

_USERS = (exp.Alias, exp.Binary, exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Not, exp.Neg, exp.Paren, exp.Tuple)
"""Parents in which a subquery is a value."""


def is_value(node: exp.Expr) -> bool:
    """Whether a node is a subquery in the place of a value."""
    parent = node.parent
    used = isinstance(parent, _USERS) or (isinstance(parent, exp.Select) and node.arg_key == "expressions")
    return isinstance(node, exp.Subquery) and used


def places_of_scalars(query: Query) -> Iterator[TextPlace]:
    """From bracket to bracket, or to the end of the line. An aggregate without GROUP BY, and LIMIT 1, return one row at most."""
    for node in query.tree.find_all(exp.Subquery) if query.tree is not None else ():
        if is_value(node) and not is_one_row(node.this) and (place := _place(query.text, node)) is not None:
            yield place


def is_one_row(query: exp.Expr) -> bool:
    """Whether a query certainly returns no more than one row."""
    limit = query.args.get("limit")
    if limit is not None and limit.expression is not None and limit.expression.name == "1":
        return True
    return isinstance(query, exp.Select) and aggregates(query) and not query.args.get("group")


def _place(text: str, node: exp.Subquery) -> TextPlace | None:
    """The bracket is the last one before the subquery's first word that SELECT or WITH follows."""
    starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    tokens = tokens_of(text)
    opening = [
        index
        for index, (one, other) in enumerate(pairwise(tokens))
        if starts and one.text == "(" and other.text.upper() in {"SELECT", "WITH"} and one.start < min(starts)
    ]
    if not opening:
        return None
    first, last = tokens[opening[-1]], tokens[closing_of(tokens, opening[-1])]
    line = text.find("\n", first.start)
    return place_between(text, first.start, min(last.end + 1, line if line >= 0 else len(text)))
