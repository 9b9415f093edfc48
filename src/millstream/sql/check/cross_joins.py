"""Finds joins of tables without a condition. Spark pairs every row with every other one, and so does an incremental query, for ever."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, definition_of, place_of, tokens_of
from millstream.sql.check.scalar_subqueries import is_one_row


def find_cross_joins(query: Query) -> Iterator[SqlFinding]:
    """Joins that nothing relates: neither ON nor USING, nor a condition of two columns in WHERE. CROSS JOIN says that it is meant."""
    if query.tree is None or _says_always(query):
        return
    for select in query.tree.find_all(exp.Select):
        where, source = select.args.get("where"), select.args.get("from_")
        if source is None or (where is not None and _relates(where.this)):
            continue
        several, joins = _has_rows(source.this), select.args.get("joins") or []
        for index, join in enumerate(joins):
            related = not _is_open(query, join) or _is_related_later(join, joins[index + 1 :])
            if several and not related and _has_rows(join.this):
                help_ = f"add `ON …` with a column of both, or write `CROSS JOIN {join.this.name or join.alias}` if that is meant"
                message = "this join has no condition, so every row is paired with every other one"
                yield SqlFinding("MS182", message, help_, place_of(query.text, join.this), "warning")
            several = several or _has_rows(join.this)


def _says_always(query: Query) -> bool:
    """Whether the text has `ON true`: the parser gives the same condition to joins that have none."""
    return any(one.token_type == TokenType.ON and other.text.upper() == "TRUE" for one, other in pairwise(tokens_of(query.text)))


def _is_open(query: Query, join: exp.Join) -> bool:
    on, named = join.args.get("on"), join.args.get("using") or join.args.get("method")
    if named or (on is not None and not isinstance(on, exp.Boolean)):
        return False
    return join.kind != "CROSS" or _follows_comma(query, join)


def _follows_comma(query: Query, join: exp.Join) -> bool:
    place = place_of(query.text, join.this)
    return any(
        one.token_type == TokenType.COMMA and place is not None and other.start == place.start
        for one, other in pairwise(tokens_of(query.text))
    )


def _has_rows(source: exp.Expr, inside: tuple[exp.Expr, ...] = ()) -> bool:
    """Whether a side of a join has any number of rows: not an aggregate of all rows, and not rows in the query itself. `inside` are the
    definitions around it, which may read themselves.
    """
    if source.args.get("joins") and not isinstance(source, exp.Select):
        return False
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        definition = definition_of(source)
        return definition is None or (definition not in inside and _has_rows(definition.this, (*inside, definition)))
    if is_one_row(source):
        return False
    if isinstance(source, exp.Subquery):
        return _has_rows(source.this, inside)
    if isinstance(source, exp.SetOperation):
        return _has_rows(source.left, inside) or _has_rows(source.right, inside)
    return isinstance(source, exp.Select) and any(_has_rows(each, inside) for each in _sides(source))


def _sides(select: exp.Select) -> list[exp.Expr]:
    first, joins = select.args.get("from_"), select.args.get("joins") or []
    return [side.this for side in (first, *joins) if side is not None]


def _relates(condition: exp.Expr) -> bool:
    """Whether a condition, among those that AND combines, may relate two tables: it reads two columns."""
    each = condition.flatten() if isinstance(condition, exp.And) else [condition]
    return any(len({column.sql() for column in one.find_all(exp.Column)}) > 1 for one in each)


def _is_related_later(join: exp.Join, later: list[exp.Join]) -> bool:
    """Whether a later join reads a column that may be of this one."""
    read = [column for each in later if each.args.get("on") is not None for column in each.args["on"].find_all(exp.Column)]
    merged = any(each.args.get("using") or each.args.get("method") for each in later)
    return merged or any(column.table.lower() in {"", join.alias_or_name.lower()} for column in read)
