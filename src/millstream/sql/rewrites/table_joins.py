"""Joins with dynamic tables, in the text of a query.

    LEFT JOIN watched w ON o.user_id = w.user_id  becomes     LATERAL VIEW OUTER inline(<function>(o.user_id)) `w` AS `user_id`, `tier`

where `<function>` is one over whole Arrow batches. A lateral view stands behind all relations of its FROM, so the join moves there, and
no stream may be joined by its columns. Line breaks stay where they were, for the sake of Spark's own messages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import TextPlace
from millstream.plan.expressions import quote_column
from millstream.plan.lookup_tables import LookupTable
from millstream.sql.check.query import parse_query, replace, tokens_of

Tables = Mapping[str, LookupTable]
Naming = Callable[[str, str], str]
"""(verb, table) → the function to call"""
ROWS = "rows"
_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "LATERAL", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "CLUSTER", "DISTRIBUTE", "SORT"}
_ENDS |= {"QUALIFY", "OFFSET", "PIVOT", "UNPIVOT", ";"}
_SIDES = {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "SEMI", "ANTI", "NATURAL"}


@dataclass(frozen=True, slots=True)
class TableJoin:
    """One join with a dynamic table; `problem` says why it is none that can be made."""

    table: str
    alias: str
    outer: bool
    place: TextPlace
    key: str = ""
    problem: str = ""
    help: str = ""
    tokens: range = range(0)
    """The tokens of the join, and of what follows up to where its lateral view goes."""
    behind: int = 0


def joins_in(text: str, tables: Tables) -> list[TableJoin]:
    query, tokens = parse_query(text), tokens_of(text)
    references = [reference for reference in query.references if reference.name in tables]
    joins = [_join(text, tables[each.name], each.place, each.alias) for each in references]
    return [join if join.problem else _alone(join, joins, tokens) for join in joins]


def with_views(text: str, tables: Tables, naming: Naming) -> str:
    """The text with its joins on dynamic tables as lateral views."""
    edits: list[tuple[TextPlace, str]] = []
    for join in joins_in(text, tables):
        if join.problem:
            continue
        table = tables[join.table]
        kept = "\n" * text[join.place.start : join.place.end].count("\n")
        columns = ", ".join(quote_column(name) for name in table.schema.names)
        outer = "OUTER " if join.outer else ""
        view = f" LATERAL VIEW {outer}inline({naming(ROWS, join.table)}({join.key})) {quote_column(join.alias)} AS {columns} "
        offset = tokens_of(text)[join.behind - 1].end + 1
        edits += [(join.place, f"{kept} "), (TextPlace(offset, offset, 0, 0), view)]
    return inserted(text, edits)


def _join(text: str, table: LookupTable, place: TextPlace, alias: str) -> TableJoin:
    tokens = tokens_of(text)
    at = next(index for index, token in enumerate(tokens) if token.start == place.start)
    first = at
    while word_of(tokens, first - 1) in {"JOIN", *_SIDES}:
        first -= 1
    words = [word_of(tokens, index) for index in range(first, at)]
    condition = at
    while condition < len(tokens) and word_of(tokens, condition) not in {"ON", "USING", ",", ")", "JOIN", *_ENDS}:
        condition += 1
    end = _end(tokens, condition + 1, {"JOIN", ","})
    whole = TextPlace(tokens[first].start, tokens[min(end, len(tokens)) - 1].end + 1, place.line, place.column)
    refused = _refusal(table, words, word_of(tokens, condition))
    if refused:
        return TableJoin(table.name, alias, False, place, problem=refused[0], help=refused[1])
    key, reason = _key(text, tokens[condition + 1 : end], table, alias)
    if reason:
        help_ = f"write `ON o.column = {alias}.{table.key}`, and other conditions after WHERE"
        return TableJoin(table.name, alias, False, place, problem=reason, help=help_)
    return TableJoin(table.name, alias, "LEFT" in words, whole, key, tokens=range(first, end), behind=_end(tokens, condition + 1, set()))


def _alone(join: TableJoin, joins: list[TableJoin], tokens: tuple[Token, ...]) -> TableJoin:
    """Refused when a stream is joined by the table's columns: they are there only after all streams are."""
    others = {index for other in joins for index in other.tokens}
    for index in range(join.tokens.stop, join.behind):
        if index not in others and word_of(tokens, index) == join.alias.upper() and word_of(tokens, index + 1) == ".":
            reason = f"what is joined after `{join.table}` cannot go by its columns"
            return dataclasses.replace(join, problem=reason, help="join the dynamic table last, or in a query of its own")
    return join


def _refusal(table: LookupTable, words: list[str], following: str) -> tuple[str, str] | None:
    if "JOIN" not in words:
        help_ = f"join it: `FROM orders o LEFT JOIN {table.name} t ON o.column = t.{table.key}`"
        return f"rows do not flow out of the dynamic table `{table.name}`, they are looked up in it", help_
    if set(words) - {"JOIN", "LEFT", "INNER", "OUTER"}:
        help_ = f"`WHERE dynamic_table_check('{table.name}', …)` keeps rows, `WHERE NOT …` leaves them out"
        return f"a dynamic table can be joined by JOIN and LEFT JOIN, not by {' '.join(words)}", help_
    if following != "ON":
        return f"the join with `{table.name}` needs ON", f"write `ON o.column = t.{table.key}`"
    return None


def _key(text: str, tokens: tuple[Token, ...], table: LookupTable, alias: str) -> tuple[str, str]:
    """What is looked up, or why that cannot be told."""
    equals = [index for index in _outside(tokens) if tokens[index].token_type == TokenType.EQ]
    joined = [index for index in _outside(tokens) if tokens[index].text.upper() in {"AND", "OR", "NOT"}]
    wanted = [alias.lower(), ".", table.key.lower()]
    if len(equals) == 1 and not joined:
        sides = tokens[: equals[0]], tokens[equals[0] + 1 :]
        for mine, other in (sides, sides[::-1]):
            if [token.text.lower() for token in mine] == wanted and other:
                if any(token.text.lower() == alias.lower() and word_of(other, index + 1) == "." for index, token in enumerate(other)):
                    break
                return text[other[0].start : other[-1].end + 1], ""
    return "", f"`{table.name}` can be joined by its key alone, with one equality"


def _outside(tokens: tuple[Token, ...]) -> Iterator[int]:
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0:
            yield index
        depth += token.token_type == TokenType.L_PAREN


def _end(tokens: tuple[Token, ...], start: int, more: set[str]) -> int:
    """The first token behind a relation: a clause, a bracket that closes, and what else is asked for."""
    depth = 0
    for index in range(start, len(tokens)):
        word = word_of(tokens, index)
        if depth == 0 and (word in _ENDS | more or word == ")" or (more and _joins(tokens, index))):
            return index
        depth += (word == "(") - (word == ")")
    return len(tokens)


def _joins(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether a join begins here: LEFT is also a function."""
    return word_of(tokens, index) in _SIDES and word_of(tokens, index + 1) in {"JOIN", *_SIDES}


def word_of(tokens: tuple[Token, ...], index: int) -> str:
    if not 0 <= index < len(tokens) or tokens[index].token_type == TokenType.STRING:
        return ""
    words = tokens[index].text.upper().split()
    return words[0] if words else ""  # GROUP BY is one token


def inserted(text: str, edits: list[tuple[TextPlace, str]]) -> str:
    """Edits at one offset stay in the order in which they were found."""
    return replace(text, [*reversed(edits)])
