r"""Parses Postgres' text form of arrays (`{1,NULL,"a \"b\""}`) and bytes (`\x00ff`), a whole column at once.

All texts of a column are in one buffer. Counting shows where a quote or a comma is literal: a character is escaped by an odd run of
backslashes before it, and is inside quotes after an odd number of unescaped quotes. So no value is parsed separately.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
_NIBBLES = np.full(256, 255, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def buffers(array: pa.Array) -> tuple[Bytes, Places]:
    """The bytes of texts or binaries, and the start of each; one more than there are values."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return (np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)), places


def pack(data: Bytes, starts: Places, lengths: Places, valid: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Pieces of a buffer as one array, in the given order."""
    lengths = np.where(valid, lengths, 0)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    gathered = data[np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])] if ends[-1] else np.empty(0, np.uint8)
    mask = pa.array(valid).buffers()[1] if len(valid) and not valid.all() else None
    parts = [mask, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(gathered))]
    return pa.Array.from_buffers(kind, len(starts), parts)


def decode_hex(texts: pa.Array) -> pa.Array:
    r"""Decode bytes from `\x…`."""
    data, places = buffers(texts)
    lengths = np.diff(places)
    digits = np.ones(len(data), bool)
    valid = _valid(texts) & (lengths >= 2)
    for skip in (0, 1):
        digits[places[:-1][valid] + skip] = False
    digits[: places[0]] = digits[places[-1] :] = False
    nibbles = _NIBBLES[data[digits]]
    if (nibbles > 15).any():
        raise pa.ArrowInvalid("bytes that are not written as hexadecimal digits")
    whole = ((nibbles[0::2] << 4) | nibbles[1::2]).astype(np.uint8)
    halves = np.where(valid, (lengths - 2) // 2, 0)
    return pack(whole, np.cumsum(halves) - halves, halves, _valid(texts), pa.binary())


def elements(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Parse one-dimensional arrays: the list offsets, null where the array is, and the elements as texts."""
    plain = pc.replace_substring_regex(texts, r"^\[[-0-9:]+\]=", "")
    data, places = buffers(plain)
    valid, base = _valid(plain), places[0]
    data, places = data[base : places[-1]], places - base
    escaped = _escaped_mask(data)
    quote = (data == ord('"')) & ~escaped
    outside = (np.cumsum(quote) - quote) % 2 == 0
    opening, closing = (outside & (data == ord(char)) for char in "{}")
    comma = outside & (data == ord(",")) & ~quote
    if opening.sum() > valid.sum():
        raise pa.ArrowInvalid("an array of several dimensions")
    starts = np.flatnonzero(opening | comma) + 1
    ends = np.flatnonzero(closing | comma)
    written = (ends > starts) | ~np.isin(starts - 1, np.flatnonzero(opening))
    starts, ends = starts[written], ends[written]
    counts = np.searchsorted(starts, places[1:]) - np.searchsorted(starts, places[:-1])
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), mask=np.concatenate([~valid, [False]]))
    return offsets, _values(data, starts, ends, quote, _escaping_mask(data, escaped))


def _values(data: Bytes, starts: Places, ends: Places, quote: npt.NDArray[np.bool_], escaping: npt.NDArray[np.bool_]) -> pa.Array:
    """Elements without their quotes and backslashes; an unquoted NULL is null."""
    kept = ~(quote | escaping)
    running = np.concatenate([[0], np.cumsum(kept)])
    bare = ~quote[starts] if len(starts) else np.empty(0, bool)
    raw = pack(data, starts, ends - starts, np.ones(len(starts), bool), pa.string())
    null = bare & np.asarray(pc.equal(raw, "NULL").fill_null(False)).astype(bool) if len(starts) else bare
    return pack(data[kept], running[starts], running[ends] - running[starts], ~null, pa.string())


def _escaped_mask(data: Bytes) -> npt.NDArray[np.bool_]:
    """Characters after an odd run of backslashes."""
    slash = data == ord("\\")
    index = np.arange(len(data))
    last = np.maximum.accumulate(np.where(slash, -1, index)) if len(data) else index
    odd: npt.NDArray[np.bool_] = np.where(slash, index - last, 0) % 2 == 1
    return np.roll(odd, 1)


def _escaping_mask(data: Bytes, escaped: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Backslashes that only escape the next character."""
    escaping: npt.NDArray[np.bool_] = (data == ord("\\")) & ~escaped
    return escaping


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid()).astype(bool) if len(array) else np.empty(0, bool)
