"""What a query selects: the items of its first SELECT, and whether an item is one column."""

from __future__ import annotations

from sqlglot import exp

from millstream.sql.check.query import word_of

_SEVERAL = ("explode", "posexplode", "inline", "stack", "json_tuple", "variant_explode")
"""Functions of which one call may be several columns, under names of their own; each also as `…_outer`."""


def first_select(query: exp.Expr | None) -> exp.Select | None:
    """The SELECT that names the columns of the result."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def items_of(query: exp.Expr | None) -> list[exp.Expr]:
    """What the first SELECT of a query selects."""
    select = first_select(query)
    return select.selects if select is not None else []


def may_be_several(text: str, item: exp.Expr) -> bool:
    """Whether a selected item may be several columns."""
    called = word_of(text, item.unalias())
    return item.is_star or isinstance(item, exp.Aliases) or called.removesuffix("_outer") in _SEVERAL
