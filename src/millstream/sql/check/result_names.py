"""Finds two columns of a query's result with the same name. Case counts: `id` and `ID` are two names for the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millstream.plan.changelog import table_of
from millstream.plan.components import TextPlace
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, names_definition, place_between, place_of, place_of_column, renames_columns, tokens_of
from millstream.sql.check.selected_items import first_select

_OTHER_STARS = ("using", "method")
"""Of joins whose `*` is not simply the columns of both sides."""


def find_repeated_names(query: Query, inputs: Mapping[str, pa.Schema | None]) -> Iterator[SqlFinding]:
    """`inputs` are the schemas whose names are spelled as Spark will see them. A `*` of other inputs is skipped."""
    seen: set[str] = set()
    select = first_select(query.tree)
    for item in select.selects if select is not None else ():
        for name in _names(item, select, inputs) if select is not None else ():
            if name in seen:
                message, help_ = f"two columns of the result are called `{name}`", "give one of them another name with AS"
                yield SqlFinding("MS030", message, help_, _place(query, item))
                return
            seen.add(name)


def _names(item: exp.Expr, select: exp.Select, inputs: Mapping[str, pa.Schema | None]) -> list[str]:
    """The columns that a selected item is, as far as they are certain."""
    if item.is_star:
        return _all_columns(item, select, inputs)
    return [item.alias_or_name] if isinstance(item, exp.Alias | exp.Column) else []


def _all_columns(star: exp.Expr, select: exp.Select, inputs: Mapping[str, pa.Schema | None]) -> list[str]:
    joins = select.args.get("joins") or []
    plain = not any(join.kind in {"SEMI", "ANTI"} or any(join.args.get(each) for each in _OTHER_STARS) for join in joins)
    changed = star.find(exp.Star)
    if (
        select.args.get("laterals")
        or select.find(exp.Pivot)
        or changed is None
        or any(changed.args.get(each) for each in ("except_", "replace", "rename"))
    ):
        return []
    sources = [select.args["from_"].this, *(join.this for join in joins)] if select.args.get("from_") else []
    wanted = star.table.lower() if isinstance(star, exp.Column) else ""
    found: list[str] = []
    for source in sources if plain else ():
        schema = _schema_of(source, inputs)
        if schema is None and not wanted:
            return []
        if schema is not None and wanted in {"", source.alias_or_name.lower()}:
            found += schema.names
    return found


def _schema_of(source: exp.Expr, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
    """The columns of a plain input."""
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    if names_definition(source) or renames_columns(source):
        return None
    return table_of(inputs.get(".".join(part.name for part in source.parts)))


def _place(query: Query, item: exp.Expr) -> TextPlace | None:
    if isinstance(item, exp.Alias):
        return place_of(query.text, item.args["alias"])
    if isinstance(item, exp.Column) and not item.is_star:
        return place_of_column(query.text, item)
    star = next((token for token in tokens_of(query.text) if token.token_type == TokenType.STAR), None)
    return place_between(query.text, star.start, star.end + 1) if star is not None else None
