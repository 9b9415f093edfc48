"""Resolves the names in a query, scope by scope: columns of tables, of common table expressions, of subqueries and of lateral views.

If the columns of one source of a SELECT are unknown, nothing is reported about that SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from millstream.plan import types
from millstream.plan.changelog import OPS, SEQUENCE
from millstream.sql.check.query import renames_columns
from millstream.sql.check.selected_items import may_be_several
from millstream.sql.check.selects import window_calls

Kinds = dict[str, pa.DataType]
"""column in lower case → its type, as far as known"""
Origin = tuple[str, str]
"""The source of a column and its name there, in lower case."""
_AFTER = (exp.Having, exp.Order, exp.Sort, exp.Cluster, exp.Distribute)
"""Clauses that see the columns of the result."""


@dataclass(frozen=True, slots=True)
class Level:
    """One SELECT and the names in its scope."""

    text: str
    scope: Scope
    sources: Mapping[str, Kinds]
    written: tuple[str, ...]
    """The columns in the inputs' spelling."""
    new: frozenset[str]
    """Names that the SELECT defines: aliases, arguments of lambdas, windows."""

    @property
    def select(self) -> exp.Select:
        assert isinstance(self.scope.expression, exp.Select)
        return self.scope.expression

    def holders(self, name: str) -> list[str]:
        """The sources that have a column of that name."""
        return [alias for alias, kinds in self.sources.items() if name.lower() in kinds]

    @property
    def results(self) -> set[str]:
        """The names of the columns of the result."""
        return {item.alias_or_name.lower() for item in self.select.selects}

    @property
    def columns(self) -> list[exp.Column]:
        """The columns that the SELECT reads from its sources. A scope leaves out those of HAVING without a table."""
        having = self.select.args.get("having")
        bare = [column for column in having.find_all(exp.Column) if len(column.parts) == 1] if having is not None else []
        return [*self.scoped_columns, *(column for column in bare if not self.may_be_result(column))]

    @property
    def scoped_columns(self) -> list[exp.Column]:
        """The same, without those of HAVING that have no table."""
        return [column for column in self.scope.columns if not self.may_be_result(column)]

    def may_be_result(self, column: exp.Column) -> bool:
        """Whether a column in HAVING or ORDER BY may be one of the result, which Spark names itself where no name is written."""
        if not isinstance(column.find_ancestor(*_AFTER, exp.Window, exp.Select), _AFTER):
            return False
        first = column.parts[0]
        own_names = len(column.parts) == 1 and isinstance(first, exp.Identifier) and first.quoted
        named = len(column.parts) == 1 and first.name.lower() in self.results
        return own_names or named or any(may_be_several(self.text, item) for item in self.select.selects)

    @property
    def merges_columns(self) -> bool:
        """Whether USING or NATURAL makes one column of two."""
        return any(join.args.get("using") or join.args.get("method") for join in self.select.args.get("joins") or ())

    @property
    def joins(self) -> Iterator[tuple[exp.Join, list[str]]]:
        """Each join, with the sources on its left side; up to one whose sides are not plain sources."""
        first, left = self.select.args.get("from_"), list[str]()
        for side in (first, *(self.select.args.get("joins") or ())) if first is not None else ():
            if side.alias_or_name not in self.sources or side.this.args.get("joins"):
                return
            if isinstance(side, exp.Join):
                yield side, list(left)
            if not isinstance(side, exp.Join) or side.kind not in {"SEMI", "ANTI"}:
                left.append(side.alias_or_name)

    def origin(self, column: exp.Column) -> Origin | None:
        """None where it is not certain: an alias of the SELECT may have that name too."""
        names = [part.name.lower() for part in column.parts]
        if (table := self._table(names)) is not None:
            return (table.lower(), names[1]) if names[1] in self.sources[table] else None
        holders = self.holders(names[0])
        return (holders[0].lower(), names[0]) if len(holders) == 1 and names[0] not in self.new else None

    def path(self, column: exp.Column) -> tuple[list[str], pa.DataType]:
        """The names of a column without its table, and the type of the first of them."""
        names = [part.name for part in column.parts]
        if (table := self._table(names)) is not None:
            return names[1:], self.sources[table].get(names[1].lower(), types.UNKNOWN)
        kinds = [kinds[names[0].lower()] for kinds in self.sources.values() if names[0].lower() in kinds]
        return names, kinds[0] if len(kinds) == 1 else types.UNKNOWN

    def _table(self, names: list[str]) -> str | None:
        """The source that the first name is, and not a column with fields: a column of that source comes first, as in Spark."""
        table = next((alias for alias in self.sources if alias.lower() == names[0].lower()), None)
        if len(names) == 1 or table is None:
            return None
        return table if names[1].lower() in self.sources[table] or not self.holders(names[0]) else None


def levels(text: str, tree: exp.Expr, tables: Mapping[str, pa.Schema]) -> Iterator[Level]:
    """The SELECTs of a query whose sources are all known. `tree` is that of the text, with its tables under the names of `tables`."""
    for scope in traverse_scope(tree):
        if not isinstance(scope.expression, exp.Select) or scope.can_be_correlated:
            continue
        found = {alias: _kinds(source, tables) for alias, source in _sources(scope)}
        known = {alias: kinds for alias, kinds in found.items() if kinds is not None}
        renamed = any(map(renames_columns, scope.expression.find_all(exp.Table))) or scope.expression.find(exp.Pivot)
        if found and len(known) == len(found) and not renamed:
            yield Level(text, scope, known, tuple(_written_names(scope, tables)), frozenset(_defined_names(scope.expression)))


def _sources(scope: Scope) -> Iterator[tuple[str, exp.Expr | Scope]]:
    """The sources of a SELECT: a scope also contains the common table expressions that it could read."""
    assert isinstance(scope.expression, exp.Select)
    joined = {join.alias_or_name for join in scope.expression.args.get("joins") or ()}  # a semi or anti join's side is not "selected"
    for alias, source in scope.sources.items():
        lateral = isinstance(source, Scope) and isinstance(source.expression, exp.Lateral)
        if lateral or alias in scope.selected_sources or alias in joined:
            yield alias, source


def _kinds(source: exp.Expr | Scope, tables: Mapping[str, pa.Schema]) -> Kinds | None:
    if isinstance(source, exp.Table):
        schema = tables.get(source.name)
        return {field.name.lower(): field.type for field in schema} if schema is not None else None
    if not isinstance(source, Scope):
        return None
    if isinstance(source.expression, exp.Lateral):
        return _lateral(source, tables)
    return _selected_columns(source, tables)


def _lateral(source: Scope, tables: Mapping[str, pa.Schema]) -> Kinds | None:
    """The columns of `LATERAL VIEW explode(list) t AS column`; without names Spark assigns its own, which are unknown here."""
    alias, call = source.expression.args.get("alias"), source.expression.this
    names = [column.name.lower() for column in alias.columns] if alias is not None else []
    if not names:
        return None
    kinds = dict.fromkeys(names, types.UNKNOWN)
    if isinstance(call, exp.Explode) and len(names) == 1 and isinstance(call.this, exp.Column) and len(call.this.parts) == 1:
        held = [kinds[call.this.name.lower()] for kinds in _above(source, tables) if call.this.name.lower() in kinds]
        kinds[names[0]] = held[0].value_type if len(held) == 1 and pa.types.is_list(held[0]) else types.UNKNOWN
    return kinds


def _above(source: Scope, tables: Mapping[str, pa.Schema]) -> list[Kinds]:
    """The columns that a lateral view is computed from."""
    found = (_kinds(each, tables) for each in source.sources.values() if isinstance(each, exp.Table))
    return [kinds for kinds in found if kinds is not None]


def _selected_columns(source: Scope, tables: Mapping[str, pa.Schema]) -> Kinds | None:
    """The column names of a query, and the columns that every query keeps."""
    names = _names(source.expression)
    return dict.fromkeys((*(name.lower() for name in names), *OPS, SEQUENCE), types.UNKNOWN) if names else None


def _names(query: exp.Expr) -> list[str]:
    """The column names of a query; empty when one of them has no name."""
    alias = query.parent.args.get("alias") if isinstance(query.parent, exp.CTE | exp.Subquery) else None
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return [column.name for column in alias.columns]
    items = query.selects if isinstance(query, exp.Query) else []
    named = all(isinstance(item, exp.Alias | exp.Column) and item.alias_or_name not in {"", "*"} for item in items)
    return [item.alias_or_name for item in items] if named else []


def _written_names(scope: Scope, tables: Mapping[str, pa.Schema]) -> Iterator[str]:
    for _, source in _sources(scope):
        if isinstance(source, exp.Table):
            yield from tables[source.name].names
        elif isinstance(source, Scope) and isinstance(source.expression, exp.Lateral):
            yield from (column.name for column in source.expression.args["alias"].columns)
        elif isinstance(source, Scope):
            yield from _names(source.expression)


def _defined_names(select: exp.Select) -> Iterator[str]:
    yield from (alias.alias.lower() for alias in select.find_all(exp.Alias))
    yield from (argument.name.lower() for function in select.find_all(exp.Lambda) for argument in function.expressions)
    yield from (call.name.lower() for call in window_calls(select))
