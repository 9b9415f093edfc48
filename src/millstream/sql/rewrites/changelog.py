"""SQL over a changelog: what happened to a row stays with it, and a condition means what it means for a table.

The text is edited at offsets, never regenerated. Each SELECT that reads a changelog gets the columns that travel by themselves, where it
does not name them; `UNION ALL` with plain rows makes those inserts. `WHERE c` lets deletes and updates through as well, and an update for
which `c` is not true leaves as a delete. A SELECT that names `_op` is the user's own business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.changelog import DELETE, INSERT, OPS, SEQUENCE, UPDATE, op_of
from millstream.plan.components import TextPlace
from millstream.sql.check.query import Query, parse_query, replace, tokens_of
from millstream.sql.check.selects import aggregates, excludes, own, place_of_select

Carried = tuple[str, ...]
_CLAUSES = {
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.WINDOW,
    TokenType.QUALIFY,
}
_PLAIN = {SEQUENCE: f"CAST(NULL AS BIGINT) AS {SEQUENCE}"} | {op: f"'{INSERT}' AS {op}" for op in OPS}


def carrying(text: str, inputs: Mapping[str, Carried]) -> str:
    """The query, with the columns that its inputs carry. What the parser does not understand stays as it is."""
    query = parse_query(text)
    if query.tree is None or not any(inputs.values()):
        return text
    carrier = _Carrier(query, query.tree, inputs)
    return replace(text, carrier.edits())


def passing(condition: str, op: str) -> str:
    """A condition on a changelog: what is to be kept, if only to say that it goes."""
    return f"(({condition}) OR {op} IN ('{UPDATE}', '{DELETE}'))"


def outcome(condition: str, op: str) -> str:
    """What has happened to the row, seen from behind the condition."""
    return f"CASE WHEN {op} = '{UPDATE}' AND NOT coalesce(({condition}), false) THEN '{DELETE}' ELSE {op} END"


def names_op(condition: str) -> bool:
    """Whether a condition looks at what happened itself."""
    return any(token.text in OPS for token in tokens_of(condition))


def lost(text: str, inputs: Mapping[str, Carried], output: Iterable[str]) -> str:
    """What is wrong with the result of a query over a changelog; empty when it is one, or the query says itself what becomes of `_op`."""
    if not any(op_of(carried) for carried in inputs.values()) or names_op(text):
        return ""
    if parse_query(text).tree is None:
        return "it is not understood here what the query does to a changelog"
    return "" if op_of(output) else "the query leaves out what happened to the rows of a changelog"


class _Carrier:
    def __init__(self, query: Query, tree: exp.Expr, inputs: Mapping[str, Carried]) -> None:
        self._text, self._tree, self._inputs = query.text, tree, inputs

    @cached_property
    def _definitions(self) -> dict[str, exp.Expr]:
        return {cte.alias: cte.this for cte in self._tree.find_all(exp.CTE)}

    def edits(self) -> list[tuple[TextPlace, str]]:
        found = [edit for definition in self._definitions.values() for edit in self._edit(definition, self._provides(definition))]
        return [*found, *self._edit(self._tree, self._provides(self._tree))]

    def _provides(self, node: exp.Expr) -> Carried:
        """The columns that travel through a query."""
        if isinstance(node, exp.SetOperation):
            both = {*self._provides(node.left), *self._provides(node.right)}
            return tuple(name for name in (*OPS, SEQUENCE) if name in both)
        if isinstance(node, exp.Subquery):
            return self._provides(node.this)
        if not isinstance(node, exp.Select) or _combines(node):
            return ()
        return next((carried for _, carried in self._sources(node) if carried), ())

    def _sources(self, select: exp.Select) -> Iterator[tuple[str, Carried]]:
        """What a SELECT reads: under which name, and what that carries."""
        tables = [select.args["from_"].this] if select.args.get("from_") else []
        for source in map(_bare, [*tables, *(join.this for join in select.args.get("joins") or ())]):
            if isinstance(source, exp.Subquery):
                yield source.alias, self._provides(source.this)
            elif isinstance(source, exp.Table):
                name = ".".join(part.name for part in source.parts)
                definition = self._definitions.get(name)
                yield source.alias_or_name, self._provides(definition) if definition is not None else self._inputs.get(name, ())

    def _edit(self, node: exp.Expr, wanted: Carried, combined: bool = False) -> Iterator[tuple[TextPlace, str]]:
        if isinstance(node, exp.SetOperation):
            yield from self._edit(node.left, wanted, True)
            yield from self._edit(node.right, wanted, True)
        elif isinstance(node, exp.Subquery):
            yield from self._edit(node.this, wanted, combined)
        elif isinstance(node, exp.Select):
            yield from self._edit_select(node, wanted, combined) if wanted else ()
            for inner in node.find_all(exp.Subquery):
                if inner.find_ancestor(exp.Select) is node and isinstance(inner.parent, exp.From | exp.Join):
                    yield from self._edit(inner.this, self._provides(inner.this))

    def _edit_select(self, select: exp.Select, wanted: Carried, combined: bool) -> Iterator[tuple[TextPlace, str]]:
        place = place_of_select(self._text, select)
        if place is None:
            return
        words = _Words(self._text, place)
        alias, carried = next(((alias, carried) for alias, carried in self._sources(select) if carried), ("", ()))
        named = {item.alias_or_name for item in select.selects}
        condition = words.condition if op_of(carried) and not _names_op(select) else None
        missing = [name for name in wanted if name not in named]
        stars = words.stars
        if stars and condition is None and not combined:
            return
        if stars and carried:
            yield words.excluding(stars[0], [name for name in missing if name in carried])
        values = [self._value(name, alias, carried, condition) for name in missing]
        if values and words.end_of_list is not None:
            yield _at(words.end_of_list), "".join(f", {value}" for value in values) + " "
        if condition is not None:
            yield condition, f" {passing(self._cut(condition), _qualified(alias, op_of(carried)))} "

    def _value(self, name: str, alias: str, carried: Carried, condition: TextPlace | None) -> str:
        if name not in carried:
            return _PLAIN[name]
        column = _qualified(alias, name)
        if condition is None or name == SEQUENCE:
            return f"{column} AS {name}"
        return f"{outcome(self._cut(condition), column)} AS {name}"

    def _cut(self, place: TextPlace) -> str:
        return self._text[place.start : place.end].strip()


class _Words:
    """The parts of one SELECT's text, found among its tokens outside of parentheses."""

    def __init__(self, text: str, place: TextPlace) -> None:
        self._place = place
        depth, self._tokens = 0, list[Token]()
        for token in tokens_of(text):
            if not place.start <= token.start < place.end:
                continue
            depth -= token.token_type == TokenType.R_PAREN
            if depth == 0:
                self._tokens.append(token)
            depth += token.token_type == TokenType.L_PAREN

    @property
    def end_of_list(self) -> int | None:
        return next((token.start for token in self._tokens if token.token_type == TokenType.FROM), None)

    @property
    def stars(self) -> list[Token]:
        """`*` and `t.*` among the columns."""
        found = []
        for before, token in zip(self._tokens, self._tokens[1:], strict=False):
            if token.token_type == TokenType.FROM:
                break
            if token.token_type == TokenType.STAR and before.token_type in {TokenType.SELECT, TokenType.COMMA, TokenType.DOT}:
                found.append(token)
        return found

    def excluding(self, star: Token, names: list[str]) -> tuple[TextPlace, str]:
        """A star without these columns, beside those that it leaves out already."""
        after = self._tokens[self._tokens.index(star) + 1 :]
        if after and excludes(star, after[0]):
            return _at(after[1].end + 1), "".join(f"{name}, " for name in names)
        return _at(star.end + 1), f" EXCEPT ({', '.join(names)})"

    @property
    def condition(self) -> TextPlace | None:
        """What stands behind WHERE."""
        where = next((token for token in self._tokens if token.token_type == TokenType.WHERE), None)
        if where is None:
            return None
        following = (token.start for token in self._tokens if token.start > where.start and token.token_type in _CLAUSES)
        return TextPlace(where.end + 1, next(following, self._place.end), 0, 0)


def _combines(select: exp.Select) -> bool:
    """Whether rows of the result are no rows of the input any more."""
    return bool(aggregates(select) or select.args.get("distinct") or any(isinstance(node, exp.Window) for node in own(select)))


def _bare(source: exp.Expr) -> exp.Expr:
    """A table without the parentheses around it."""
    while isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table) and not source.alias:
        source = source.this
    return source


def _names_op(select: exp.Select) -> bool:
    return any(isinstance(node, exp.Column) and node.name in OPS for node in own(select)) or any(
        item.alias_or_name in OPS for item in select.selects
    )


def _qualified(alias: str, name: str) -> str:
    return f"`{alias}`.{name}" if alias else name


def _at(offset: int) -> TextPlace:
    return TextPlace(offset, offset, 0, 0)
