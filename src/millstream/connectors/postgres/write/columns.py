"""Maps columns of a stream to columns of Postgres: how each is staged, and its type in a new table.

Plain types are copied in binary. Structs, maps and lists become JSON, lists of plain values arrays on request. Types without a binary COPY
form are staged as text, and the merge casts them to the type of the target's column: so a text can be written to a `uuid`, an `inet` or an
enum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.clients.postgres import NAME_BYTES, quote_name
from millstream.errors import Diagnostic, RunError
from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Arrays = Literal["json", "native"]
TYPE = re.compile(r"[a-zA-Z_][\w ]*(\(\d+( *, *-?\d+)?\))?( with(out)? time zone)?(\[\])?")
"""The form of a type's name: nothing that could end a statement or begin another."""
_PLAIN = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_CUT = {"character varying", "character", "text", "name"}
"""A cast to one of these silently truncates texts; an assignment refuses texts that are too long."""


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """One column."""

    name: str
    staged: str
    """Its type in the staging table."""
    declared: str
    """Its type in a new table."""
    text: Literal["", "json", "string"] = ""
    """The conversion to text, if it is needed."""


PLACE = StagedColumn("_millstream_place", "bigint", "bigint")
"""The column with a row's position in its epoch."""


def columns_of(frame: DataFrame, arrays: Arrays, types: dict[str, str]) -> tuple[StagedColumn, ...]:
    """The columns of a frame."""
    found = tuple(_column(field.name, field.dataType, arrays, types.get(field.name, "")) for field in frame.schema.fields)
    for column in found:
        if len(column.name.encode()) > NAME_BYTES:
            message = f"the column `{column.name}` has a name of {len(column.name.encode())} bytes, and Postgres allows {NAME_BYTES}"
            raise RunError(Diagnostic("MS114", message, help="rename it in a transform before the sink"))
    return found


def to_staging_types(frame: DataFrame, columns: tuple[StagedColumn, ...], *beside: str) -> DataFrame:
    """The frame for staging: every column in a type with a binary COPY form, after the expressions `beside`. Expressions are texts: Spark's
    Python columns cost several calls to the JVM each.
    """
    return frame.selectExpr(*beside, *[f"{sent_value(column)} AS {quote_column(column.name)}" for column in columns])


def sent_value(column: StagedColumn) -> str:
    """The expression of a staged column."""
    name = quote_column(column.name)
    if column is PLACE:  # rows that were not shuffled are in the order of their source
        return "monotonically_increasing_id()"
    if column.text == "json":
        return f"to_json({name}, map('ignoreNullFields', 'false'))"
    return f"cast({name} AS string)" if column.text == "string" else name


def cast(source: str, staged: str, target: str) -> str:
    """An expression that casts a staging table's type to the target's."""
    base = re.sub(r"\(.*?\)", "", target)
    return source if base == staged or base in _CUT else f"{source}::{base}"


def column_definitions(columns: tuple[StagedColumn, ...], required: tuple[str, ...]) -> str:
    """The columns of a staging table. A key must not be null: two nulls would be two rows."""
    return ", ".join(f"{quote_name(each.name)} {each.staged}{' NOT NULL' if each.name in required else ''}" for each in columns)


def _column(name: str, kind: DataType, arrays: Arrays, override: str) -> StagedColumn:
    column = _column_of_type(name, kind, arrays)
    return StagedColumn(name, column.staged, override, column.text) if override else column


def _column_of_type(name: str, kind: DataType, arrays: Arrays) -> StagedColumn:
    from pyspark.sql import types as T

    word = kind.simpleString()
    if isinstance(kind, T.DecimalType):
        return StagedColumn(name, "numeric", f"numeric({kind.precision}, {kind.scale})")
    if isinstance(kind, T.DayTimeIntervalType):
        return StagedColumn(name, "interval", "interval")
    if isinstance(kind, T.CharType | T.VarcharType):
        return StagedColumn(name, "text", f"varchar({kind.length})")
    if word in _PLAIN:
        return StagedColumn(name, _PLAIN[word], _PLAIN[word])
    if isinstance(kind, T.ArrayType) and arrays == "native" and kind.elementType.simpleString() in _PLAIN:
        element = _PLAIN[kind.elementType.simpleString()]
        return StagedColumn(name, f"{element}[]", f"{element}[]")
    if isinstance(kind, T.StructType | T.ArrayType | T.MapType | T.VariantType):
        return StagedColumn(name, "text", "jsonb", "json")
    declared = "time" if word.startswith("time(") else "interval" if isinstance(kind, T.YearMonthIntervalType) else "text"
    return StagedColumn(name, "text", declared, "string")
