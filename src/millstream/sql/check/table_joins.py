"""Joins with dynamic tables in the text of a query: which there are, by which key, and what is wrong with them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import TextPlace
from millstream.plan.lookup_tables import LookupTable
from millstream.sql.check.query import Query, parse_query, tokens_of

Tables = Mapping[str, LookupTable]
_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "LATERAL", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "CLUSTER", "DISTRIBUTE", "SORT"}
_ENDS |= {"QUALIFY", "OFFSET", "PIVOT", "UNPIVOT", ";"}
_SIDES = {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "SEMI", "ANTI", "NATURAL"}


@dataclass(frozen=True, slots=True)
class TableJoin:
    """One join with a dynamic table; `problem` says why it is none that can be made."""

    table: str
    place: TextPlace
    key: str = ""
    problem: str = ""
    help: str = ""


def joins_in(text: str, tables: Tables) -> list[TableJoin]:
    query = parse_query(text)
    references = [reference for reference in query.references if reference.name in tables]
    return [_join(text, tables[each.name], each.place, each.alias) for each in references]


@lru_cache(maxsize=512)
def without_joins(text: str, tables: frozenset[str]) -> Query:
    """A query as its streams see it: joins with dynamic tables are no joins of streams."""
    query = parse_query(text)
    if query.tree is None or not tables:
        return query
    tree = query.tree.copy()
    for join in list(tree.find_all(exp.Join)):
        if isinstance(join.this, exp.Table) and ".".join(part.name for part in join.this.parts) in tables:
            join.pop()
    return Query(text, tree)


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
        return TableJoin(table.name, place, problem=refused[0], help=refused[1])
    key, reason = _key(text, tokens[condition + 1 : end], table, alias)
    if reason:
        help_ = f"write `ON o.column = {alias}.{table.key}`, and other conditions after WHERE"
        return TableJoin(table.name, place, problem=reason, help=help_)
    return TableJoin(table.name, whole, key)


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
