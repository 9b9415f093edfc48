"""Parses Postgres' change messages (`pgoutput`, version 1), many messages at once.

A message is a letter followed by bytes; a row is a count and then, for each column, a letter (`n` null, `u` unchanged, `t` text), a length
and the text. The position of a column depends on the lengths before it, so the parser goes column by column, over all rows in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.connectors.postgres.read.texts import Bytes, Places, buffers, pack

BEGIN, COMMIT, RELATION, TRUNCATE = (ord(letter) for letter in "BCRT")
INSERT, UPDATE, DELETE = (ord(letter) for letter in "IUD")
_NEW, _FULL, _TEXT, _UNCHANGED = (ord(letter) for letter in "NOtu")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Relation:
    """The description of a table for the following messages."""

    oid: int
    schema: str
    name: str
    columns: tuple[str, ...]
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Messages:
    """One batch of messages."""

    data: Bytes
    starts: Places
    kinds: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, array: pa.Array) -> Messages:
        data, places = buffers(array)
        return cls(data, places[:-1], data[places[:-1]] if len(array) else np.empty(0, np.uint8))

    def places(self, kind: int) -> Places:
        return np.flatnonzero(self.kinds == kind)

    def number(self, places: Places, width: int) -> Places:
        """Big-endian numbers of `width` bytes."""
        found = np.zeros(len(places), np.int64)
        for byte in range(width):
            found = (found << 8) | self.data[places + byte]
        return found

    def relation(self, index: int) -> Relation:
        """The description of a table; there are few of them."""
        at = int(self.starts[index])
        oid = int(self.number(np.array([at + 1]), 4)[0])
        schema, at = self._word(at + 5)
        name, at = self._word(at)
        count = int(self.number(np.array([at + 1]), 2)[0])
        at, names, types = at + 3, [], []
        for _ in range(count):
            column, at = self._word(at + 1)
            names.append(column)
            types.append(int(self.number(np.array([at]), 4)[0]))
            at += 8
        return Relation(oid, schema or "pg_catalog", name, tuple(names), tuple(types))

    def truncated_tables(self, index: int) -> list[int]:
        """The tables in a truncate message."""
        at = int(self.starts[index])
        count = int(self.number(np.array([at + 1]), 4)[0])
        return [int(oid) for oid in self.number(at + 6 + 4 * np.arange(count), 4)]

    def tuples(self, places: Places, width: int) -> Tuples:
        """Rows with this many columns that begin at these positions."""
        at, kinds, starts, lengths = places + 2, [], [], []
        for _ in range(width):
            kind = self.data[at]
            text = kind == _TEXT
            length = np.zeros(len(at), np.int64)
            length[text] = self.number(at[text] + 1, 4)
            kinds.append(kind)
            starts.append(at + 5)
            lengths.append(length)
            at = at + 1 + np.where(text, length + 4, 0)
        return Tuples(self.data, kinds, starts, lengths, at)

    def _word(self, at: int) -> tuple[str, int]:
        end = at + int(np.argmax(self.data[at : at + 1024] == 0))
        return self.data[at:end].tobytes().decode(), end + 1


@dataclass(frozen=True, slots=True)
class Tuples:
    """Rows in columnar form: for each column the letters, positions and lengths of its values."""

    data: Bytes
    kinds: list[npt.NDArray[np.uint8]]
    starts: list[Places]
    lengths: list[Places]
    ends: Places

    def texts(self, column: int) -> pa.Array:
        """A column as texts; unchanged values are null, see `unchanged`."""
        return pack(self.data, self.starts[column], self.lengths[column], self.kinds[column] == _TEXT, pa.string())

    def unchanged(self, column: int) -> Mask:
        found: Mask = self.kinds[column] == _UNCHANGED
        return found


@dataclass(frozen=True, slots=True)
class Images:
    """The old (if present) and new rows of some messages of one table."""

    index: Places
    """The indexes of the messages in their batch."""
    kinds: npt.NDArray[np.uint8]
    old: Tuples
    has_old: Mask
    full: Mask
    """Whether the old row is complete, and not only its key."""
    new: Tuples
    has_new: Mask


def images(messages: Messages, index: Places, width: int) -> Images:
    """The rows of inserts, updates and deletes of one table."""
    mark = messages.starts[index] + 5
    kinds, first = messages.kinds[index], messages.data[mark]
    has_old, has_new = first != _NEW, kinds != DELETE
    old = messages.tuples(mark[has_old] + 1, width)
    begins = mark.copy()
    begins[has_old] = old.ends
    return Images(index, kinds, old, has_old, first == _FULL, messages.tuples(begins[has_new] + 1, width), has_new)
