"""Analyses a user's SQL without Spark: its tables, its columns, whether it needs state, whether it is deterministic.

What the offline parser does not understand is left to Spark (`Query.tree` is None then).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import ParseError, TokenError, exp, parse, tokenize
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import TextPlace
from millstream.sql.check.builtins import AGGREGATES
from millstream.sql.check.syntax import Fault, fault_of, no_query, repeated_comma

CLOCKS = {"CURRENT_TIMESTAMP", "NOW", "CURRENT_DATE", "CURDATE", "LOCALTIMESTAMP", "UNIX_TIMESTAMP"}
_AROUND = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.In, exp.Exists)
"""The parents of a subquery that is not a value of an expression."""
_DISGUISE = "w1ndow"
_BARE_CLOCKS = {"CURRENT_TIMESTAMP", "CURRENT_DATE"}
RANDOM = {
    "RAND",
    "RANDOM",
    "RANDN",
    "RANDSTR",
    "UUID",
    "SHUFFLE",
    "UNIFORM",
    "MONOTONICALLY_INCREASING_ID",
    "SPARK_PARTITION_ID",
    "INPUT_FILE_NAME",
    "INPUT_FILE_BLOCK_START",
    "INPUT_FILE_BLOCK_LENGTH",
    "REFLECT",
    "TRY_REFLECT",
    "JAVA_METHOD",
}
"""Functions with another value each time."""
_VARYING = {"CURRENT_TIME", "TABLESAMPLE"}
"""Words that are also valid without brackets."""
_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.IGNORECASE)
"""Texts that Spark accepts as a time, cast or not: the time at which the query is planned."""
_IV = 5
"""The position of the initialisation vector in the arguments of `aes_encrypt`."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A table as the query names it."""

    name: str
    place: TextPlace
    alias: str
    """The qualifier of its columns."""


@dataclass(frozen=True, slots=True)
class Query:
    """One parsed query."""

    text: str
    tree: exp.Expr | None
    fault: Fault | None = None
    """Why it could not be parsed."""

    @property
    def references(self) -> tuple[Reference, ...]:
        if self.tree is None:
            return ()
        tables = [table for table in self.tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
        return tuple(_reference(self.text, table) for table in tables if table.db or not names_definition(table))

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reference.name for reference in self.references))

    @property
    def piped(self) -> bool:
        """Whether it has steps after `|>`: the tree has them as nested queries, whose columns are not those of the text."""
        return any(token.token_type == TokenType.PIPE_GT for token in tokens_of(self.text))

    @property
    def deterministic(self) -> bool:
        """Whether it returns the same rows each time. If unknown, false."""
        tokens = tokens_of(self.text)
        return not any(_varies(tokens, index) for index in range(len(tokens)))

    def stateful(self) -> tuple[str, TextPlace | None] | None:
        """The first construct that needs state across rows."""
        return _stateful(self.text, self.tree) if self.tree is not None else None

    def with_node_names(self, names: Iterable[str]) -> str:
        """The text with table names spelled as the nodes are, where only the case differs."""
        known = list(names)
        wanted = {table: [name for name in known if name.lower() == table.lower()] for table in self.tables if table not in known}
        return replace(self.text, [(r.place, wanted[r.name][0]) for r in self.references if len(wanted.get(r.name, ())) == 1])


def names_definition(table: exp.Table) -> bool:
    """Whether a table is a definition of WITH."""
    return definition_of(table) is not None


def definition_of(table: exp.Table) -> exp.CTE | None:
    """The definition of WITH with this name that can be seen at its place: `t` in `WITH t AS (SELECT * FROM t)` is another table."""
    below: exp.Expr = table
    around: exp.Expr | None = table.parent
    while around is not None:
        if isinstance(around, exp.With):
            seen = around.expressions if around.recursive else around.expressions[: around.expressions.index(below)]
        else:
            inside = around.args.get("with_") or around.args.get("with")
            seen = inside.expressions if inside is not None and inside is not below else []
        found: list[exp.CTE] = [cte for cte in seen if cte.alias.lower() == table.name.lower()]
        if found:
            return found[-1]
        below, around = around, around.parent
    return None


def renames_columns(table: exp.Expr) -> bool:
    """Whether a table has other columns here than where it is defined: `t AS x(a, b)`, PIVOT, UNPIVOT."""
    alias = table.args.get("alias")
    return bool(table.args.get("pivots")) or (isinstance(alias, exp.TableAlias) and bool(alias.columns))


@lru_cache(maxsize=512)
def parse_query(text: str) -> Query:
    """Parse once; plans ask many times."""
    try:
        trees = [tree for tree in parse(_disguise_window(text), dialect="spark") if tree is not None]
    except (ParseError, TokenError) as error:
        return Query(text, None, fault_of(text, error, tokens_of(text)))
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):  # faults of the parser itself, on syntax that it half knows
        return Query(text, None, Fault("not understood"))
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return Query(text, None, no_query(tokens_of(text)))
    if slip := repeated_comma(tokens_of(text)):
        return Query(text, None, slip)
    for hint in list(trees[0].find_all(exp.Hint)):  # its names are aliases, and no tables
        hint.pop()
    for call in trees[0].find_all(exp.Anonymous):
        if call.name == _DISGUISE:
            call.set("this", "window")
    return Query(text, trees[0])


def _disguise_window(text: str) -> str:
    """The parser reads `window(` after GROUP BY as a clause; under another name of the same length it is a function."""
    tokens = tokens_of(text)
    calls = [token for index, token in enumerate(tokens) if token.token_type == TokenType.WINDOW and _calls(tokens, index)]
    return replace(text, [(TextPlace(token.start, token.end + 1, token.line, token.col), _DISGUISE) for token in calls])


def reads_clock(text: str) -> bool:
    """Whether a text seems to call `now()` or the like."""
    tokens = tokens_of(text)
    return any(_is_clock(tokens, index) for index in range(len(tokens)))


def _is_clock(tokens: tuple[Token, ...], index: int) -> bool:
    word = tokens[index].text.upper()
    if word not in CLOCKS or tokens[index].token_type == TokenType.STRING:
        return False
    return _empty_call(tokens, index) or (word in _BARE_CLOCKS and not _calls(tokens, index))


def replace(text: str, edits: Iterable[tuple[TextPlace, str]]) -> str:
    """Apply replacements at offsets, last first."""
    for place, new in sorted(edits, key=lambda edit: edit[0].start, reverse=True):
        text = text[: place.start] + new + text[place.end :]
    return text


def word_of(text: str, call: exp.Expr) -> str:
    """The name of a call as it is written, in lower case: the parser has one name for several functions."""
    return text[call.meta["start"] : call.meta["end"] + 1].lower() if "start" in call.meta else ""


def place_of(text: str, node: exp.Expr) -> TextPlace | None:
    """The position of the first identifier or keyword under a tree that has one."""
    for child in node.walk():
        if "start" in child.meta:
            return _place(text, child)
    return None


def place_of_column(text: str, column: exp.Column) -> TextPlace | None:
    """The position of a column with its table."""
    parts = column.parts
    return _place(text, *parts) if all("start" in part.meta for part in parts) else place_of(text, column)


def _place(text: str, *parts: exp.Expr) -> TextPlace:
    return place_between(text, parts[0].meta.get("start", 0), parts[-1].meta.get("end", 0) + 1)


def place_between(text: str, start: int, end: int) -> TextPlace:
    """Two offsets as a place."""
    before = text[:start]
    return TextPlace(start, end, before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1)


def _reference(text: str, table: exp.Table) -> Reference:
    alias = table.alias or table.parts[-1].name
    name = ".".join(part.name for part in table.parts)
    return Reference(name, _place(text, *table.parts), alias)


def _stateful(text: str, tree: exp.Expr) -> tuple[str, TextPlace | None] | None:
    for node in tree.walk():
        word = _state_word(node)
        if word:
            return word, place_of(text, node)
    return None


def _state_word(node: exp.Expr) -> str:
    if isinstance(node, exp.Group | exp.Having):
        return "GROUP BY"
    if isinstance(node, exp.Distinct):
        return "DISTINCT"
    if isinstance(node, exp.Window):
        return "a window function"
    if isinstance(node, exp.Order | exp.Limit | exp.Offset | exp.Sort):
        return node.key.upper() + (" BY" if isinstance(node, exp.Order | exp.Sort) else "")
    if is_aggregate(node) and not node.find_ancestor(exp.Window):
        return f"the aggregate {node.name if isinstance(node, exp.Anonymous) else node.key}"
    if word := subquery_word(node) or clause_word(node):
        return word
    if isinstance(node, exp.SetOperation) and (not isinstance(node, exp.Union) or node.args.get("distinct")):
        return f"{node.key.upper()} without ALL" if isinstance(node, exp.Union) else node.key.upper()
    return "a join" if joins_tables(node) else ""


def joins_tables(node: exp.Expr) -> bool:
    """Whether a join has a stream on its right side, and not rows in the query itself (`VALUES`, `range(…)`)."""
    if not isinstance(node, exp.Join) or isinstance(node.this, exp.Lateral | exp.Unnest):
        return False
    return any(isinstance(table.this, exp.Identifier) for table in node.this.find_all(exp.Table))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a call computes one value from many rows; the parser does not know all of Spark's."""
    if isinstance(node, exp.Any):  # `any(condition)`, and not the `ANY (…)` of a comparison
        return isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Binary)
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Func) and _function_name(node) in AGGREGATES)


def _function_name(node: exp.Func) -> str:
    return str(node.name if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else node.sql_name()).lower()


def subquery_word(node: exp.Expr) -> str:
    """The name of a subquery inside an expression that reads a table."""
    if not any(True for _ in node.find_all(exp.Table)):
        return ""
    if isinstance(node, exp.Exists):
        return "EXISTS over a stream"
    if isinstance(node, exp.In) and node.args.get("query"):
        return "IN (SELECT …) over a stream"
    if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        return "LATERAL over a stream"
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, _AROUND):
        return "a subquery of a stream in an expression"
    return ""


def is_nested(select: exp.Select) -> bool:
    """Whether a SELECT is part of an expression, and not a relation of the query."""
    around = select.parent
    while around is not None and not isinstance(around, exp.Select):
        if isinstance(around, exp.Exists | exp.In | exp.Lateral) or (
            isinstance(around, exp.Subquery) and not isinstance(around.parent, _AROUND)
        ):
            return True
        around = around.parent
    return False


def clause_word(node: exp.Expr) -> str:
    """Clauses of FROM that need more than one row."""
    if isinstance(node, exp.Pivot) and not node.args.get("unpivot"):
        return "PIVOT"
    return "TABLESAMPLE" if isinstance(node, exp.TableSample) else "OFFSET" if isinstance(node, exp.Offset) else ""


@lru_cache(maxsize=512)
def tokens_of(text: str) -> tuple[Token, ...]:
    try:
        return tuple(tokenize(text, dialect="spark"))
    except TokenError:
        return ()


def _calls(tokens: tuple[Token, ...], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN


def _empty_call(tokens: tuple[Token, ...], index: int) -> bool:
    return _calls(tokens, index) and index + 2 < len(tokens) and tokens[index + 2].token_type == TokenType.R_PAREN


def _varies(tokens: tuple[Token, ...], index: int) -> bool:
    token = tokens[index]
    word, called = token.text.upper(), _calls(tokens, index)
    if token.token_type == TokenType.STRING:
        return bool(_MOMENT.fullmatch(token.text))
    return word in _VARYING or (called and (word in RANDOM or (word == "AES_ENCRYPT" and not _has_fixed_vector(tokens, index))))


def _has_fixed_vector(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether `aes_encrypt` has a fixed vector, or needs none; else its result is random. An empty vector counts as none."""
    arguments = _arguments(tokens, index + 1)
    if len(arguments) > 2 and [token.text.upper() for token in arguments[2]] == ["ECB"]:
        return True
    return len(arguments) >= _IV and [token.text for token in arguments[_IV - 1]] != [""]


def _arguments(tokens: tuple[Token, ...], bracket: int) -> list[list[Token]]:
    """The arguments of a call, between its commas."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[bracket:]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            break
        if depth == 1 and token.token_type == TokenType.COMMA:
            found.append([])
        elif depth > 1 or token.token_type != TokenType.L_PAREN:
            found[-1].append(token)
    return found
