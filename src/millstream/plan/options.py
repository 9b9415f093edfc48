"""The types of component options: durations, sizes, lists of columns, schemas, conditions.

Each converts what people write (`5m`, `128MB`, `id, user`) into one plain value, and back into the same text for YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from millstream.plan import expressions, types
from millstream.units import Duration, Size

__all__ = ["Columns", "Duration", "Expression", "SchemaMap", "Size", "TypeName"]


def _columns(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _types(value: Any) -> Any:
    if isinstance(value, pa.Schema):
        return types.columns(value)
    if isinstance(value, Mapping):
        wrong = {str(name): reason for name, kind in value.items() if (reason := _wrong_type(kind))}
        if wrong:
            raise PydanticCustomError("column_type", "{reason}", {"reason": "; ".join(wrong.values()), "columns": wrong})
    return value


def _wrong_type(kind: Any) -> str:
    try:
        types.parse(str(kind))
    except ValueError as error:
        return str(error)
    return ""


def _type_name(value: Any) -> Any:
    if isinstance(value, pa.DataType):
        return types.name_of(value)
    if isinstance(value, str) and (reason := _wrong_type(value)):
        raise PydanticCustomError("column_type", "{reason}", {"reason": reason})
    return value


def _condition(value: Any) -> Any:
    text = str(value) if isinstance(value, expressions.Expr) else value
    if isinstance(text, str):
        try:
            expressions.expr(text)
        except ValueError as error:
            raise PydanticCustomError("expression", "{reason}", {"reason": str(error)}) from None
    return text


_ONE_OR_MANY = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

Columns = Annotated[tuple[str, ...], BeforeValidator(_columns), WithJsonSchema(_ONE_OR_MANY)]
"""Column names: `id`, `id, user` or `[id, user]`."""

SchemaMap = Annotated[dict[str, str], BeforeValidator(_types)]
"""Column → Arrow type name; a `pyarrow.Schema` is accepted too."""

Expression = Annotated[str, BeforeValidator(_condition)]
"""An expression of Spark SQL; in Python also `col("a") > 3`."""

TypeName = Annotated[str, BeforeValidator(_type_name)]
"""The name of an Arrow type; a `pyarrow.DataType` is accepted too."""
