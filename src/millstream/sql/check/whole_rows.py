"""Texts that see columns which they do not name: `struct(*)`, `t(x, y)`, `* EXCEPT (a)`. A `SELECT *` only hands columns on."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from millstream.sql.check.query import parse_query

_KNOWN = 1000


@lru_cache(maxsize=_KNOWN)
def sees_whole_rows(text: str) -> bool:
    """Whether one more column in its input might change what a query or an expression returns. If unknown, true."""
    tree = _tree(text)
    if tree is None or "|>" in text:
        return "*" in text or "|>" in text
    renamed = any(alias.args.get("columns") and isinstance(alias.parent, exp.Table | exp.Subquery | exp.CTE) for alias in _aliases(tree))
    return renamed or bool(list(tree.find_all(exp.Pivot))) or not all(map(_hands_on, tree.find_all(exp.Star)))


def _tree(text: str) -> exp.Expr | None:
    query = parse_query(text)
    if query.tree is not None:
        return query.tree
    try:
        return parse_one(text, dialect="spark")
    except (SqlglotError, AttributeError, TypeError, ValueError, KeyError, IndexError):  # the last ones are faults of the parser itself
        return None


def _aliases(tree: exp.Expr) -> list[exp.TableAlias]:
    return list(tree.find_all(exp.TableAlias))


def _hands_on(star: exp.Star) -> bool:
    """Whether a star is an item of a SELECT, with all columns of its table."""
    item = star.parent if isinstance(star.parent, exp.Column) else star
    return isinstance(item.parent, exp.Select) and item.arg_key == "expressions" and not any(star.args.values())
