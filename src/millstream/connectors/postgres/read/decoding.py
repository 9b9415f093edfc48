"""Decodes a slot's messages into batches of rows.

Transactions come complete and in the order of their commits. Two kinds are skipped: those in the spool (the slot advances only when rows
are committed, so it returns them again), and those that the first snapshot of the table saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from millstream.connectors.postgres.read.pgoutput import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    RELATION,
    TRUNCATE,
    UPDATE,
    Mask,
    Messages,
    Relation,
    images,
)
from millstream.connectors.postgres.read.rows import ChangeShape, rows
from millstream.connectors.postgres.read.texts import Places
from millstream.errors import Diagnostic, RunError

_TURN = 2**32


@dataclass(frozen=True, slots=True)
class Seen:
    """The transactions that a snapshot saw, in the form of `pg_current_snapshot()`: `xmin:xmax:running,running`."""

    low: int
    high: int
    running: frozenset[int]
    until: int
    """A position in the log after the snapshot."""

    @classmethod
    def of(cls, text: str, until: int) -> Seen:
        low, high, running = text.split(":")
        return cls(int(low), int(high), frozenset(int(each) for each in running.split(",") if each), until)

    def has(self, transaction: int, commit: int) -> bool:
        """Whether it saw a transaction. Messages have 32 bits of its id: the one nearest to the snapshot is meant. This is valid for
        commits up to the snapshot; later ids wrap around.
        """
        if commit >= self.until:
            return False
        distance = (transaction - self.high) % _TURN
        number = self.high + (distance if distance < _TURN // 2 else distance - _TURN)
        return number < self.high and number not in self.running


@dataclass
class Decoder:
    """Keeps the current transaction and the tables' descriptions from batch to batch."""

    shape: ChangeShape
    place: tuple[str, str]
    """The table's schema and name."""
    after: int
    """Transactions that were committed before this are skipped."""
    seen: Seen | None
    columns: dict[str, int]
    """The pinned columns, and their types' ids."""
    others: frozenset[str] | None = frozenset()
    """Columns that existed and are not selected; None when new ones do not matter."""
    truncate: Literal["fail", "ignore"] = "fail"
    changed: Literal["fail", "ignore"] = "fail"
    end: int = 0
    taken: int = 0
    """Messages of transactions that were not skipped."""
    relations: dict[int, Relation] = field(default_factory=dict)
    _wanted: bool = False

    def decode(self, array: pa.Array) -> pa.Table | None:
        """The rows of some messages in their order, without `_seq`; None when there are none."""
        messages = Messages.of(array)
        wanted = self._transactions(messages)
        self._ends(messages, wanted)
        self._truncations(messages, wanted)
        row = np.isin(messages.kinds, [INSERT, UPDATE, DELETE]) & wanted
        parts = [part for relation, index in self._versions(messages, row) if (part := self._part(messages, relation, index)) is not None]
        return _in_order(parts) if parts else None

    def _transactions(self, messages: Messages) -> Mask:
        """Messages of transactions that are neither spooled nor seen."""
        begins = messages.places(BEGIN)
        commits = messages.number(messages.starts[begins] + 1, 8)
        numbers = messages.number(messages.starts[begins] + 17, 4)
        pairs = [(int(commit), int(number)) for commit, number in zip(commits, numbers, strict=True)]
        fresh = [commit >= self.after and not (self.seen and self.seen.has(number, commit)) for commit, number in pairs]
        own = np.searchsorted(begins, np.arange(len(messages.kinds)), "right")
        wanted: Mask = np.array([self._wanted, *fresh], bool)[own]
        self._wanted = bool(fresh[-1]) if fresh else self._wanted
        return wanted

    def _ends(self, messages: Messages, wanted: Mask) -> None:
        commits = messages.places(COMMIT)
        if len(commits):
            self.end = max(self.end, int(messages.number(messages.starts[commits[-1:]] + 10, 8)[0]))
        self.taken += int(wanted.sum())

    def _truncations(self, messages: Messages, wanted: Mask) -> None:
        for index in messages.places(TRUNCATE):
            hit = [oid for oid in messages.truncated_tables(int(index)) if self._ours(self._description(messages, oid, int(index)))]
            if hit and wanted[index] and self.truncate == "fail":
                message = f"table `{self.shape.table}` was truncated, and its changes do not contain the deleted rows"
                raise RunError(Diagnostic("MS127", message, help="empty the target, then continue with `truncate: ignore`"))

    def _description(self, messages: Messages, oid: int, index: int) -> Relation | None:
        """The description of a table before a message of this batch."""
        for at in messages.places(RELATION)[::-1]:
            if at < index and (found := messages.relation(int(at))).oid == oid:
                return found
        return self.relations.get(oid)

    def _versions(self, messages: Messages, row: Mask) -> list[tuple[Relation, Places]]:
        """Rows of our table, by the description that applies to them."""
        oids = np.full(len(row), -1, np.int64)
        oids[row] = messages.number(messages.starts[row] + 1, 4)
        described = [(int(at), messages.relation(int(at))) for at in messages.places(RELATION)]
        found: list[tuple[Relation, Places]] = []
        for oid in {*self.relations, *(relation.oid for _, relation in described)}:
            steps = [(-1, self.relations[oid])] if oid in self.relations else []
            steps += [(at, relation) for at, relation in described if relation.oid == oid]
            ends = [at for at, _ in steps[1:]] + [len(row)]
            for (begin, relation), end in zip(steps, ends, strict=True):
                index = np.flatnonzero(oids[max(begin, 0) : end] == oid) + max(begin, 0)
                found.append((relation, index))
        self.relations |= {relation.oid: relation for _, relation in described}
        return [(relation, index) for relation, index in found if len(index) and self._ours(relation)]

    def _ours(self, relation: Relation | None) -> bool:
        return relation is not None and (relation.schema, relation.name) == self.place

    def _part(self, messages: Messages, relation: Relation, index: Places) -> tuple[Places, pa.Table] | None:
        self._same(relation)
        return rows(images(messages, index, len(relation.columns)), relation, self.shape)

    def _same(self, relation: Relation) -> None:
        """The table must match its pinned columns, unless `on_schema_change` is `ignore`."""
        there = dict(zip(relation.columns, relation.types, strict=True))
        added = [name for name in there if self.others is not None and name not in self.columns and name not in self.others]
        dropped = [name for name in self.columns if name not in there]
        other = [name for name, kind in self.columns.items() if there.get(name, kind) != kind]
        if self.changed == "fail" and (added or dropped or other):
            raise RunError(_change(self.shape.table, added, dropped, other))


def _change(table: str, added: Sequence[str], dropped: Sequence[str], other: Sequence[str]) -> Diagnostic:
    changes = [("has the new column", added), ("has lost the column", dropped), ("has another type for the column", other)]
    said = ", ".join(f"{what} {' and '.join(f'`{name}`' for name in names)}" for what, names in changes if names)
    help_ = "`on_schema_change: ignore` continues with the known columns; `--reset QUERY` starts anew with the current ones"
    return Diagnostic("MS126", f"table `{table}` {said}", detail="nothing is lost: the slot keeps the changes", help=help_)


def _in_order(parts: list[tuple[Places, pa.Table]]) -> pa.Table:
    order = np.concatenate([order for order, _ in parts])
    return pa.concat_tables([table for _, table in parts]).take(pa.array(np.argsort(order, kind="stable"))).combine_chunks()
