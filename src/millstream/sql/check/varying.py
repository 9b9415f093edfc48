"""Finds values that differ each time in a query that is kept up to date: a row that was returned could not be removed again.

Found is what a run certainly refuses. The clock is refused wherever Spark's analysed plan has it. A random value is refused only if
Spark's optimised plan still has it, and so it is found in what the whole query returns, in its WHERE and in its ORDER BY, as the value
itself or in arithmetic and comparisons. Nothing is said of one in another call, in AND, OR, CASE or COALESCE, nor in a query with constant
conditions, NULL or LIMIT 0, because Spark may compute these without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import TextPlace
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import CLOCKS, RANDOM, Query, is_nested, names_definition, place_between, tokens_of, word_of
from millstream.sql.check.selects import window_calls

_CLOCKS = (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)
CLOCK_NAMES = {name.lower() for name in CLOCKS}
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Floor, exp.Ceil, exp.Round)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_KEEPING = (exp.Alias, exp.Paren, exp.Cast, exp.Where, exp.Ordered, exp.Order, *_ARITHMETIC, *_COMPARISONS)
"""What a random value may stand in so that Spark certainly computes it."""
_OUTSIDE = "compute it in a node whose rows this query reads"


def find_varying(query: Query, columns: Collection[str], *, returned: bool) -> Iterator[SqlFinding]:
    """`columns` are those of the inputs; `returned`: no other node chooses among the columns of the result."""
    if query.tree is None or _has_unread_definitions(query.tree):
        return
    for place in dict.fromkeys(place for place in _clocks(query, query.tree, {name.lower() for name in columns}) if place is not None):
        message = f"`{_called(query.text, place)}` changes with the clock, and rows that were computed before would not"
        yield SqlFinding("MS030", message, _OUTSIDE, place)
    for place in dict.fromkeys(_random(query, query.tree) if returned and not _may_be_decided(query, query.tree) else ()):
        message = f"`{_called(query.text, place)}` has another value each time, so a row that was returned could not be removed again"
        yield SqlFinding("MS030", message, _OUTSIDE, place)


def _clocks(query: Query, tree: exp.Expr, columns: set[str]) -> Iterator[TextPlace | None]:
    for node in tree.find_all(*_CLOCKS, exp.Anonymous):
        if _is_inside_expression(node) or (isinstance(node, exp.Anonymous) and node.name.lower() != "now"):
            continue
        call = node if "start" in node.meta else node.find_ancestor(exp.Func)
        if call is not None and word_of(query.text, call) in CLOCK_NAMES:
            yield place_between(query.text, call.meta["start"], call.meta["end"] + 1)
        else:
            yield _bare(query.text, node.key, columns)


def _bare(text: str, key: str, columns: set[str]) -> TextPlace | None:
    """The one clock without brackets, if it is no column and no other name."""
    tokens = tokens_of(text)
    alike = [(index, token) for index, token in enumerate(tokens) if token.text.lower().replace("_", "") == key]
    if len(alike) != 1 or alike[0][1].text.lower() in columns:
        return None
    return place_between(text, alike[0][1].start, alike[0][1].end + 1)


def _random(query: Query, tree: exp.Expr) -> Iterator[TextPlace]:
    for select in _outermost(tree):
        parts = [*select.selects, select.args.get("where"), select.args.get("order")]
        for call in (node for part in parts if part is not None for node in part.find_all(exp.Func)):
            if _is_random(query.text, call) and _is_computed(call, select):
                yield place_between(query.text, call.meta["start"], call.meta["end"] + 1)


def _outermost(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs that return rows. Those that group by window may run natively, with random values."""
    if isinstance(node, exp.SetOperation):
        yield from (*_outermost(node.left), *_outermost(node.right))
    elif isinstance(node, exp.Select) and not window_calls(node):
        yield node


def _is_computed(call: exp.Expr, select: exp.Select) -> bool:
    """Whether Spark certainly computes a call of this SELECT."""
    around = call.parent
    while isinstance(around, _KEEPING):
        around = around.parent
    return around is select


def _may_be_decided(query: Query, tree: exp.Expr) -> bool:
    """Whether constants may decide what a query, or a part of it, returns."""
    limits = [limit.expression for limit in tree.find_all(exp.Limit)]
    if tree.find(exp.Boolean, exp.Null) or any(limit is None or not limit.is_int or limit.name == "0" for limit in limits):
        return True
    conditions = [each for each in tree.find_all(exp.Predicate, exp.Where, exp.Having) if not each.find(exp.Column, exp.Query)]
    return any(not any(_is_random(query.text, call) for call in each.find_all(exp.Func)) for each in conditions)


def _is_random(text: str, call: exp.Expr) -> bool:
    return word_of(text, call).upper() in RANDOM


def _is_inside_expression(node: exp.Expr) -> bool:
    """Whether a node is in a subquery that is part of an expression."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        if is_nested(select):
            return True
        select = select.find_ancestor(exp.Select)
    return False


def _has_unread_definitions(tree: exp.Expr) -> bool:
    """Whether WITH defines something that Spark leaves out."""
    read = {table.name.lower() for table in tree.find_all(exp.Table) if names_definition(table)}
    return any(cte.alias.lower() not in read for cte in tree.find_all(exp.CTE))


def _called(text: str, place: TextPlace) -> str:
    """A call as it is written, without its arguments."""
    after = [token for token in tokens_of(text) if token.start >= place.end][:2]
    return text[place.start : place.end] + _brackets(after)


def _brackets(after: list[Token]) -> str:
    kinds = [token.token_type for token in after]
    return "" if kinds[:1] != [TokenType.L_PAREN] else "()" if kinds == [TokenType.L_PAREN, TokenType.R_PAREN] else "(…)"
