"""Writes the columns of an Arrow table as Postgres' arrays in their text form: the parameters of a statement.

Every value has the text from which Postgres reads exactly it: the shortest digits of a float, the hexadecimal form of bytes, ISO times.
Values without such a text (a time before the year 1 or after 9999) are not written here: their epoch is staged by the workers, in binary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_LEAST_DAY, _MOST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
"""In microseconds."""
_MOST_HOURS = 1 << 31
"""Servers before version 15 read the hours of an interval as a number of 32 bits."""


class NoTextForm(Exception):  # noqa: N818 — not an error: the rows are written in another way
    """A value has no text from which Postgres would read the same value, or must be refused by Postgres itself."""


def array_texts(table: pa.Table) -> tuple[str, ...]:
    """For each column the text of an array."""
    return tuple(_array_text(_texts(column.combine_chunks())) for column in table.columns)


def _array_text(texts: Iterable[str | None]) -> str:
    return "{" + ",".join("NULL" if text is None else _quote(text) for text in texts) + "}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _texts(values: pa.Array) -> Sequence[str | None]:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _plain_texts(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if value is None else f"\\x{value.hex()}" for value in values.to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(values)
    if pa.types.is_duration(kind):
        return [None if value is None else _interval(value) for value in values.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(kind):
        _require_between(values.cast(pa.int32()), _LEAST_DAY, _MOST_DAY)
    elif pa.types.is_timestamp(kind):
        _require_between(values.cast(pa.int64()), _LEAST_DAY * _DAY, (_MOST_DAY + 1) * _DAY - 1)
    found: list[str | None] = values.cast(pa.string()).to_pylist()
    return found


def _plain_texts(values: pa.Array) -> Sequence[str | None]:
    try:
        texts: list[str | None] = values.to_pylist()
    except UnicodeDecodeError as error:
        raise NoTextForm from error
    if any(text is not None and "\0" in text for text in texts):
        raise NoTextForm
    return texts


def _lists(values: pa.Array) -> list[str | None]:
    items, ends, present = _texts(values.flatten()), [0], values.is_valid().to_pylist()
    for length in pc.list_value_length(values).to_pylist():
        ends.append(ends[-1] + (length or 0))
    return [_array_text(items[ends[place] : ends[place + 1]]) if given else None for place, given in enumerate(present)]


def _interval(microseconds: int) -> str:
    hours, rest = divmod(abs(microseconds), _HOUR)
    if hours >= _MOST_HOURS:
        raise NoTextForm
    minutes, rest = divmod(rest, _MINUTE)
    seconds, fraction = divmod(rest, _SECOND)
    return f"{'-' if microseconds < 0 else ''}{hours}:{minutes:02}:{seconds:02}.{fraction:06}"


def _require_between(values: pa.Array, least: int, most: int) -> None:
    found = pc.min_max(values).as_py()
    if found["min"] is not None and (found["min"] < least or found["max"] > most):
        raise NoTextForm
