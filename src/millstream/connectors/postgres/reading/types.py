"""Postgres' types in Arrow, and one way from its texts to Arrow's arrays.

A table's rows come by binary COPY, its changes as text. What both know natively (numbers, texts, bytes, dates, times) is read as it is;
everything else is asked for as text, and goes through the same conversion as a change: a row looks the same whichever way it came.
Moments beyond the years 1 to 9999, `infinity` among them, become the first or the last moment in between: Spark has no others.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from millstream.clients.postgres import quoted
from millstream.connectors.postgres.reading.texts import elements, unhexed

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
    """The Arrow type of Postgres' own name for a type, as `format_type` writes it. What Arrow has no word for is text."""
    if kind.endswith("[]"):
        return pa.list_(arrow_type(kind[:-2]))
    if found := _NUMERIC.fullmatch(kind):
        precision, scale = int(found[1]), int(found[2])
        return pa.decimal128(precision, scale) if precision <= 38 and 0 <= scale <= precision else pa.string()
    return _PLAIN.get(_bare(kind), pa.string())


def selected(name: str, kind: str, wanted: pa.DataType) -> str:
    """SQL for a column, whose result `shaped` can take."""
    bare, column = _bare(kind), quoted(name)
    if not kind:  # a column that is gone
        return f"NULL::text AS {column}"
    if bare not in _PLAIN or _PLAIN[bare] != wanted:
        return f"{column}::text AS {column}"
    if bare in _LIMITS:
        low, high = (f"'{limit}'::{bare}" for limit in _LIMITS[bare])
        return f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END AS {column}"
    return f"{column}::int8 AS {column}" if bare == "oid" else column


def shaped(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """What a client gave, in the type that is wanted. ArrowInvalid when a value does not fit."""
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
        return unhexed(texts)
    if pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
        return _moments(texts, wanted)
    if pa.types.is_list(wanted):
        offsets, values = elements(texts)
        return pa.ListArray.from_arrays(offsets, from_text(values, wanted.value_type), type=wanted)
    return texts.cast(wanted)


def _moments(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """ISO dates and times, in UTC where they have a zone; those that Spark cannot hold become the nearest that it can."""
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
