"""Columns of a stream as columns of Postgres: how each travels, and what a new table declares.

Plain types travel as they are, in binary. Structs, maps and lists become JSON, lists of plain values arrays on request. What binary
COPY has no form for travels as text, and the merge casts it to the type of the target's column: so a text reaches a `uuid`, an `inet`
or an enum that the table declares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.clients.postgres import NAME_BYTES, quoted
from millstream.errors import Diagnostic, RunError

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Arrays = Literal["json", "native"]
TYPE = re.compile(r"[a-zA-Z_][\w ]*(\(\d+( *, *-?\d+)?\))?( with(out)? time zone)?(\[\])?")
"""What a type's name may look like: nothing that could end a statement or begin another."""
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
"""A cast to one of these cuts texts off in silence; an assignment refuses what is too long."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column on its way."""

    name: str
    staged: str
    """Its type in the staging table."""
    declared: str
    """Its type in a table that is made for it."""
    text: Literal["", "json", "string"] = ""
    """How it becomes text first, where it must."""


PLACE = Column("_millstream_place", "bigint", "bigint")
"""Where a row stands in its epoch."""


def placed(frame: DataFrame) -> DataFrame:
    """With the rows' places: as long as nothing has shuffled them, they stand in the order of their source."""
    from pyspark.sql import functions as F

    return frame.withColumn(PLACE.name, F.monotonically_increasing_id())


def columns_of(frame: DataFrame, arrays: Arrays, types: dict[str, str]) -> tuple[Column, ...]:
    """The columns of a frame."""
    found = tuple(_column(field.name, field.dataType, arrays, types.get(field.name, "")) for field in frame.schema.fields)
    for column in found:
        if len(column.name.encode()) > NAME_BYTES:
            message = f"the column `{column.name}` has a name of {len(column.name.encode())} bytes, and Postgres takes {NAME_BYTES}"
            raise RunError(Diagnostic("MS114", message, help="rename it in a transform before the sink"))
    return found


def travelling(frame: DataFrame, columns: tuple[Column, ...], *beside: SparkColumn) -> DataFrame:
    """The frame as the workers get it: everything in a type that COPY has a binary form for."""
    from pyspark.sql import functions as F

    def sent(column: Column) -> SparkColumn:
        value = F.col(f"`{column.name.replace('`', '``')}`")
        if column.text == "json":
            value = F.to_json(value, {"ignoreNullFields": "false"})
        elif column.text == "string":
            value = value.cast("string")
        return value.alias(column.name)

    return frame.select(*beside, *[sent(column) for column in columns])


def cast(source: str, staged: str, target: str) -> str:
    """An expression of a staging table's type as one of the target's."""
    base = re.sub(r"\(.*?\)", "", target)
    return source if base == staged or base in _CUT else f"{source}::{base}"


def defined(columns: tuple[Column, ...], required: tuple[str, ...]) -> str:
    """The columns of a staging table. A key must not be null: two nulls would be two rows."""
    return ", ".join(f"{quoted(each.name)} {each.staged}{' NOT NULL' if each.name in required else ''}" for each in columns)


def _column(name: str, kind: DataType, arrays: Arrays, override: str) -> Column:
    column = _typed(name, kind, arrays)
    return Column(name, column.staged, override, column.text) if override else column


def _typed(name: str, kind: DataType, arrays: Arrays) -> Column:
    from pyspark.sql import types as T

    word = kind.simpleString()
    if isinstance(kind, T.DecimalType):
        return Column(name, "numeric", f"numeric({kind.precision}, {kind.scale})")
    if isinstance(kind, T.DayTimeIntervalType):
        return Column(name, "interval", "interval")
    if isinstance(kind, T.CharType | T.VarcharType):
        return Column(name, "text", f"varchar({kind.length})")
    if word in _PLAIN:
        return Column(name, _PLAIN[word], _PLAIN[word])
    if isinstance(kind, T.ArrayType) and arrays == "native" and kind.elementType.simpleString() in _PLAIN:
        element = _PLAIN[kind.elementType.simpleString()]
        return Column(name, f"{element}[]", f"{element}[]")
    if isinstance(kind, T.StructType | T.ArrayType | T.MapType | T.VariantType):
        return Column(name, "text", "jsonb", "json")
    declared = "time" if word.startswith("time(") else "interval" if isinstance(kind, T.YearMonthIntervalType) else "text"
    return Column(name, "text", declared, "string")
