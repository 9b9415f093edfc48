"""Finds joins of tables without a condition. Spark pairs every row with every other one, and so does an incremental query, for ever."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, place_of, tokens_of
from millstream.sql.check.scalar_subqueries import is_one_row


def find_cross_joins(query: Query) -> Iterator[SqlFinding]:
    """Joins that nothing relates: neither ON nor USING, and no comparison of columns in WHERE. CROSS JOIN says that it is meant."""
    if query.tree is None or _says_always(query):
        return
    for select in query.tree.find_all(exp.Select):
        where, source = select.args.get("where"), select.args.get("from_")
        if source is None or (where is not None and _relates(where)):
            continue
        several = _has_rows(source.this)
        for join in select.args.get("joins") or ():
            if several and _has_rows(join.this) and _is_open(query, join):
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


def _has_rows(source: exp.Expr) -> bool:
    """Whether a side of a join is a table with any number of rows: not an aggregate of all rows, and not rows in the query itself."""
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        definitions = [cte.this for cte in source.root().find_all(exp.CTE) if cte.alias.lower() == source.name.lower()]
        return not source.args.get("joins") and not any(map(is_one_row, definitions))
    return isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select) and not is_one_row(source.this)


def _relates(where: exp.Where) -> bool:
    """Whether a condition may compare columns of two tables."""
    return any(len({column.sql() for column in each.find_all(exp.Column)}) > 1 for each in where.find_all(exp.Predicate))
