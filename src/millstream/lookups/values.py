"""Converts values for a table and back: keys to the table's type, text to typed columns.

A key that cannot be in a table (an integer outside the column's range, a text with a NUL byte) is not an error: it is not found. A key of
another kind (a text where the table has integers) is an error, because the comparison would never be true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import Diagnostic, RunError
from millstream.lookups.keys import INTEGERS, agrees, spark_name


def fit_keys(values: pa.Array, kind: pa.DataType, table: str) -> pa.Array:
    """Keys in the table's type; null where no row can have such a key."""
    if not agrees(values.type, kind):
        message = f"the key of `{table}` is `{kind}`, but it is looked up by `{values.type}`"
        raise RunError(Diagnostic("MS132", message, help=f"convert it in SQL: `CAST(… AS {spark_name(kind)})`"))
    if kind in INTEGERS and values.type != kind:
        wide = values.cast(pa.int64()) if pa.types.is_decimal(values.type) or values.type not in INTEGERS else values
        bits = kind.bit_width - 1
        inside = pc.and_kleene(pc.greater_equal(wide, -(2**bits)), pc.less_equal(wide, 2**bits - 1)) if bits < 63 else None
        return (wide if inside is None else pc.if_else(inside, wide, None)).cast(kind)
    fitting = values if values.type == kind else values.cast(kind)
    if kind == pa.string() and pc.any(pc.match_substring(fitting, "\0")).as_py():
        return pc.if_else(pc.match_substring(fitting, "\0"), None, fitting)
    return fitting


def refuse_nul(rows: pa.Table, table: str) -> None:
    """No backend can store a NUL byte in a text."""
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
            message = f"`{table}`: a value of `{name}` contains a NUL byte, which no table can keep"
            raise RunError(Diagnostic("MS136", message, help=f"remove it in SQL: `replace({name}, '\\0', '')`"))


def parse_values(values: Sequence[Any], kind: pa.DataType, table: str, column: str) -> pa.Array:
    """Values of an untyped backend (texts, numbers, bytes) as the column's type."""
    try:
        if pa.types.is_boolean(kind):
            return pa.array([_truth(value) for value in values], kind)
        if pa.types.is_binary(kind) or all(not isinstance(value, str | bytes) for value in values):
            return pa.array(values, kind)
        texts = pa.array([_text(value) for value in values], pa.string())
        if pa.types.is_timestamp(kind) and kind.tz:
            return pc.cast(pc.if_else(_with_zone(texts), texts, pc.binary_join_element_wise(texts, "Z", "")), kind)
        return texts if kind == pa.string() else texts.cast(kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        message = f"`{table}`: a value of `{column}` is not a `{kind}`: {reason}"
        raise RunError(Diagnostic("MS136", message, help="correct the value in the table, or the column's type")) from None


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values for an untyped backend: text where a number would lose precision."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]  # a list, which the stubs do not know
    return column.to_pylist()  # type: ignore[no-any-return]  # the same


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else None if value is None else str(value)


def _truth(value: Any) -> bool | None:
    word = _text(value)
    if word is None or word.lower() in {"1", "t", "true", "yes"}:
        return None if word is None else True
    if word.lower() in {"0", "f", "false", "no"}:
        return False
    raise ValueError(f"`{word}`")


def _with_zone(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?\d\d)$")
