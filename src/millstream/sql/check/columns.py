"""Resolves columns of SQL without Spark: unknown columns that a query reads, and its output columns, with types where known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from millstream.plan import types
from millstream.sql.check.column_names import find_ambiguous, find_unknown
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.grouping import find_aggregates_of_one_row, find_ungrouped, find_unsummable
from millstream.sql.check.query import Query, renames_columns
from millstream.sql.check.resolution import Level, levels

_SIMPLE = {
    exp.DType.BOOLEAN: "bool",
    exp.DType.TINYINT: "int8",
    exp.DType.SMALLINT: "int16",
    exp.DType.INT: "int32",
    exp.DType.BIGINT: "int64",
    exp.DType.FLOAT: "float32",
    exp.DType.DOUBLE: "float64",
    exp.DType.TEXT: "string",
    exp.DType.VARCHAR: "string",
    exp.DType.BINARY: "binary",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
}
_SPARK_NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "bool": "boolean",
}


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known about a query's columns."""

    output: pa.Schema | None
    mistakes: tuple[SqlFinding, ...] = ()


def analyse(query: Query, inputs: Mapping[str, pa.Schema | None]) -> Analysis:
    """Resolve against the inputs' schemas. If a schema is unknown, or the query has pipes, nothing is reported."""
    if query.tree is None or query.piped or any(inputs.get(name) is None for name in query.tables):
        return Analysis(None)
    known = {name: schema for name, schema in inputs.items() if schema is not None}
    tree, tables = _flatten(query, known)
    try:
        if wrong := _mistakes(query, tree, {f"t{index}": schema for index, schema in enumerate(known.values())}):
            return Analysis(None, wrong)
        if any(map(renames_columns, tree.find_all(exp.Table))):
            return Analysis(None)
        qualified = qualify(tree, schema=tables, dialect="spark", validate_qualify_columns=False, identify=False, quote_identifiers=False)
        return Analysis(_output(annotate_types(qualified, schema=tables, dialect="spark")))
    except SqlglotError:
        return Analysis(None)


def _mistakes(query: Query, tree: exp.Expr, tables: Mapping[str, pa.Schema]) -> tuple[SqlFinding, ...]:
    found = [finding for level in levels(query.text, tree, tables) for finding in _mistakes_of(query, level)]
    return tuple(dict.fromkeys(found))


def _mistakes_of(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Unknown columns first: what is said of the others may follow from them."""
    unknown, one_row = list(find_unknown(query, level)), list(find_aggregates_of_one_row(query, level))
    yield from unknown or [*find_ambiguous(query, level), *(one_row or find_ungrouped(query, level)), *find_unsummable(query, level)]


def qualified(query: Query, known: Mapping[str, pa.Schema]) -> tuple[exp.Expr, MappingSchema]:
    """The query with the table of each column, over inputs that are named t0, t1 and so on; raises sqlglot's errors."""
    tree, tables = _flatten(query, known)
    found = qualify(tree, schema=tables, dialect="spark", validate_qualify_columns=False, identify=False, quote_identifiers=False)
    return found, tables


def type_of(text: str, query: Query, inputs: Mapping[str, pa.Schema | None]) -> pa.DataType:
    """The type of a plain column of a query's inputs; unknown for everything else."""
    expression = _parse(text)
    if not isinstance(expression, exp.Column):
        return types.UNKNOWN
    aliases = {reference.alias.lower(): inputs.get(reference.name) for reference in query.references}
    schemas = [aliases.get(expression.table.lower())] if expression.table else list(aliases.values())
    kinds = [field.type for schema in schemas if schema is not None for field in schema if field.name.lower() == expression.name.lower()]
    return kinds[0] if len(kinds) == 1 else types.UNKNOWN


def _parse(text: str) -> exp.Expr | None:
    try:
        return parse_one(text, dialect="spark")
    except SqlglotError:
        return None


def _flatten(query: Query, known: Mapping[str, pa.Schema]) -> tuple[exp.Expr, MappingSchema]:
    """Dotted node names as one-part tables, so that the resolver has one level."""
    assert query.tree is not None
    tree, flat = query.tree.copy(), {name: f"t{index}" for index, name in enumerate(known)}
    for table in list(tree.find_all(exp.Table)):
        name = ".".join(part.name for part in table.parts)
        if name in flat:
            alias = table.alias or table.parts[-1].name
            table.set("db", None)
            table.set("catalog", None)
            table.set("this", exp.to_identifier(flat[name]))
            columns = table.args["alias"].columns if table.args.get("alias") else []
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
    schema: dict[str, object] = {flat[name]: {field.name: _spark_name(field.type) for field in schema} for name, schema in known.items()}
    return tree, MappingSchema(schema, dialect="spark")


def _output(tree: exp.Expr) -> pa.Schema | None:
    if not isinstance(tree, exp.Query) or any(isinstance(item, exp.Star) for item in tree.selects):
        return None
    if any(not item.alias_or_name for item in tree.selects):
        return None
    sure = not any(True for _ in tree.find_all(exp.Lateral))
    return pa.schema([pa.field(item.alias_or_name, _type_of(item.unalias(), sure)) for item in tree.selects])


def _type_of(item: exp.Expr, sure: bool) -> pa.DataType:
    """The parser's type if it is reliable: not for computed decimals, nor for columns of a lateral view."""
    kind = _arrow(item.type) if sure else types.UNKNOWN
    computed = not isinstance(item, exp.Column | exp.Cast)
    return types.UNKNOWN if computed and pa.types.is_decimal(kind) else kind


def _arrow(kind: exp.DataType | None) -> pa.DataType:
    if kind is None:
        return types.UNKNOWN
    if kind.this in _SIMPLE:
        return types.parse(_SIMPLE[kind.this])
    try:
        return types.parse(kind.sql(dialect="spark").lower())
    except ValueError:
        return types.UNKNOWN


def _spark_name(kind: pa.DataType) -> str:
    name = types.name_of(kind)
    return _SPARK_NAMES.get(name, "string" if name == "unknown" else name.replace("list<", "array<"))
