"""Maps Postgres' types to Arrow's, and converts its texts to Arrow arrays.

Rows of a table come by binary COPY, changes as text. Types that both support (numbers, texts, bytes, dates, times) are read directly; all
others are requested as text and converted like a change: a row looks the same in both ways. Times outside of the years 1 to 9999, including
`infinity`, become the first or last supported time: Spark has no others.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from millstream.clients.postgres import quote_name
from millstream.connectors.postgres.read.texts import decode_hex, elements

_PLAIN: dict[str, pa.DataType] = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "oid": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "bytea": pa.binary(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
_LIMITS = {
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp without time zone": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "timestamp with time zone": ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_MODIFIER = re.compile(r"\(\d+(?:,-?\d+)?\)")


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a Postgres type in the form of `format_type`. A type that Arrow does not have is text."""
    if kind.endswith("[]"):
        return pa.list_(arrow_type(kind[:-2]))
    if found := _NUMERIC.fullmatch(kind):
        precision, scale = int(found[1]), int(found[2])
        return pa.decimal128(precision, scale) if precision <= 38 and 0 <= scale <= precision else pa.string()
    return _PLAIN.get(_bare(kind), pa.string())


def select_sql(name: str, kind: str, wanted: pa.DataType) -> str:
    """SQL for a column, in a form that `to_arrow` accepts."""
    bare, column = _bare(kind), quote_name(name)
    if not kind:  # a dropped column
        return f"NULL::text AS {column}"
    if bare not in _PLAIN or _PLAIN[bare] != wanted:
        return f"{column}::text AS {column}"
    if bare in _LIMITS:
        low, high = (f"'{limit}'::{bare}" for limit in _LIMITS[bare])
        return f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END AS {column}"
    return f"{column}::int8 AS {column}" if bare == "oid" else column


def to_arrow(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A client's array in the required type. ArrowInvalid when a value does not fit."""
    if array.type == wanted:
        return array
    return from_text(array, wanted) if pa.types.is_string(array.type) else array.cast(wanted)


def from_text(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Postgres' texts as values. ArrowInvalid when one does not fit."""
    if pa.types.is_string(wanted):
        return texts
    if pa.types.is_boolean(wanted):
        return pc.or_(pc.equal(texts, "t"), pc.equal(texts, "true"))
    if pa.types.is_binary(wanted):
        return decode_hex(texts)
    if pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
        return _moments(texts, wanted)
    if pa.types.is_list(wanted):
        offsets, values = elements(texts)
        return pa.ListArray.from_arrays(offsets, from_text(values, wanted.value_type), type=wanted)
    return texts.cast(wanted)


def _moments(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """ISO dates and times, in UTC if they have a zone; those outside of Spark's range become the nearest one."""
    low, high = _LIMITS["date" if pa.types.is_date(wanted) else "timestamp without time zone"]
    texts = pc.if_else(pc.match_substring_regex(texts, r"^-infinity| BC$"), low, texts)
    texts = pc.if_else(pc.match_substring_regex(texts, r"^infinity|^\d{5,}-"), high, texts)
    if pa.types.is_date(wanted):
        return texts.cast(wanted)
    moments = pc.replace_substring_regex(texts, r"\+00$", "").cast(pa.timestamp("us"))
    return moments.cast(wanted) if wanted.tz is None else pc.assume_timezone(moments, "UTC").cast(wanted)


def _bare(kind: str) -> str:
    """A type's name without its length or precision."""
    bare = _MODIFIER.sub("", kind)
    return "text" if bare in {"character varying", "character", "name"} else bare
