"""Converts Python values to Arrow columns: values in rows and in YAML (texts for times and decimals) become the schema's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.plan import types


def to_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema | None) -> pa.Table:
    """Rows as a table. Without a schema the types are inferred. ValueError when values do not fit."""
    rows = list(rows)
    names = schema.names if schema is not None else list(dict.fromkeys(name for row in rows for name in row))
    if schema is not None:
        _refuse_others(rows, schema)
    columns = {name: _column(name, [row.get(name) for row in rows], schema.field(name).type if schema else None) for name in names}
    return pa.table(columns) if columns else (schema or pa.schema([])).empty_table()


def to_plain(table: pa.Table) -> pa.Table:
    """The same table in Spark's types; ValueError where there is none."""
    return table.cast(plain_schema(table.schema))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _plain_type(field.name, field.type)) for field in schema])


def to_text(value: Any) -> Any:
    """A value in a form that YAML supports."""
    if isinstance(value, Mapping):
        return {str(name): to_text(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_text(inner) for inner in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _column(name: str, values: list[Any], kind: pa.DataType | None) -> pa.Array:
    try:
        found = pa.array([_value(value, kind) for value in values], kind) if kind is not None else pa.array(values)
        return found.cast(_plain_type(name, found.type))
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        wanted = f"as {types.name_of(kind)}" if kind is not None else "in one column"
        raise ValueError(f"the values of `{name}` do not fit {wanted}: {error}") from None


def _plain_type(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return _plain_type(name, kind.value_type)
    try:
        return types.parse(types.name_of(kind))
    except ValueError:
        raise ValueError(f"column `{name}` has the type {kind}, which Spark does not have; cast it to another type") from None


def _value(value: Any, kind: pa.DataType) -> Any:
    """One value, converted to the type."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_value(key, kind.key_type), _value(item, kind.item_type)) for key, item in pairs]
    return _scalar(value, kind)


def _scalar(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind) and isinstance(value, str | datetime):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=UTC) if kind.tz and moment.tzinfo is None else moment
    if pa.types.is_date(kind) and isinstance(value, str):
        return date.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return Decimal(str(value))
    return value.encode() if pa.types.is_binary(kind) and isinstance(value, str) else value


def _refuse_others(rows: list[Mapping[str, Any]], schema: pa.Schema) -> None:
    others = sorted({name for row in rows for name in row} - set(schema.names))
    if others:
        raise ValueError(f"the rows have `{others[0]}`, which is not in the schema")
