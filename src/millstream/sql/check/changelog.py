"""SQL over a changelog, without Spark: which columns travel through a query by themselves. The plan is rewritten in `sql/catalyst`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from millstream.plan.changelog import OPS, SEQUENCE, kept_columns
from millstream.sql.check.query import Query, tokens_of
from millstream.sql.check.selects import aggregates, own

Carried = tuple[str, ...]


def names_op(text: str) -> bool:
    """Whether a text looks at what happened itself."""
    return any(token.text in OPS for token in tokens_of(text))


def with_carried_columns(query: Query, schema: pa.Schema, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema:
    """The columns of a query's result, with those that it carries. They come last, unless the query names them or takes all columns as
    they are.
    """
    known = [found for found in inputs.values() if found is not None]
    if query.tree is None or not any(kept_columns(found.names) for found in known):
        return schema
    definitions = {cte.alias: cte.this for cte in query.tree.find_all(exp.CTE)}
    wanted = _provides(query.tree, definitions, {name: kept_columns(found.names) for name, found in inputs.items() if found is not None})
    types = {field.name: field for found in known for field in found if field.name in wanted}
    last = [name for name in wanted if name not in _names_in_place(query.tree, schema)]
    return pa.schema([*(field for field in schema if field.name not in last), *(types[name] for name in last)])


def _names_in_place(tree: exp.Expr, schema: pa.Schema) -> set[str]:
    select, combined = tree, isinstance(tree, exp.SetOperation)
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        return set(schema.names)
    filtered = select.args.get("where") is not None and not _names_op(select)
    stars = any(item.is_star for item in select.selects)
    return set(schema.names) if stars and not filtered and not combined else {item.alias_or_name for item in select.selects}


def _provides(node: exp.Expr, definitions: Mapping[str, exp.Expr], inputs: Mapping[str, Carried]) -> Carried:
    """The columns that travel through a query."""
    if isinstance(node, exp.SetOperation):
        both = {*_provides(node.left, definitions, inputs), *_provides(node.right, definitions, inputs)}
        return tuple(name for name in (*OPS, SEQUENCE) if name in both)
    if isinstance(node, exp.Subquery):
        return _provides(node.this, definitions, inputs)
    if not isinstance(node, exp.Select) or _combines(node):
        return ()
    return next((carried for carried in _sources(node, definitions, inputs) if carried), ())


def _sources(select: exp.Select, definitions: Mapping[str, exp.Expr], inputs: Mapping[str, Carried]) -> Iterator[Carried]:
    """What the tables of a SELECT carry."""
    tables = [select.args["from_"].this] if select.args.get("from_") else []
    for source in map(_bare, [*tables, *(join.this for join in select.args.get("joins") or ())]):
        if isinstance(source, exp.Subquery):
            yield _provides(source.this, definitions, inputs)
        elif isinstance(source, exp.Table):
            name = ".".join(part.name for part in source.parts)
            others = {each: query for each, query in definitions.items() if each != name}
            yield _provides(definitions[name], others, inputs) if name in definitions else inputs.get(name, ())


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
