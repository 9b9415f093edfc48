"""Converts change messages to rows: typed columns, `_op`, and the order of changes.

An update that changes the key becomes two rows, a delete of the old key and an insert of the new one, so that keyed readers remove the old
row. Values that an update did not change and the log omits are taken from the old row if the log has it (`REPLICA IDENTITY FULL`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.postgres.read.pgoutput import DELETE, INSERT, Images, Mask, Relation, Tuples
from millstream.connectors.postgres.read.texts import Places
from millstream.connectors.postgres.read.types import from_text
from millstream.errors import Diagnostic, RunError
from millstream.plan.changelog import OP, SEQUENCE


@dataclass(frozen=True, slots=True)
class ChangeShape:
    """The schema of the rows, and the policy for missing values."""

    table: str
    schema: pa.Schema
    key: tuple[str, ...]
    unchanged: str = "fail"

    @property
    def full(self) -> pa.Schema:
        return pa.schema([*self.schema, pa.field(OP, pa.string()), pa.field(SEQUENCE, pa.int64())])


def rows(images: Images, relation: Relation, shape: ChangeShape) -> tuple[Places, pa.Table]:
    """The rows of some messages, and their order: twice the message's number, plus one for new rows."""
    before = [_column(images.old, relation, name) for name in shape.schema.names]
    after = [_after(images, relation, name, old, shape) for name, old in zip(shape.schema.names, before, strict=True)]
    moved = _key_changed(images, before, after, shape)
    gone = (images.kinds == DELETE) | moved
    was = pa.array(gone[images.has_old])
    new_kinds, new_moved = images.kinds[images.has_new], moved[images.has_new]
    ops = np.where((new_kinds == INSERT) | new_moved, "i", "u")
    order = np.concatenate([images.index[gone & images.has_old] * 2, images.index[images.has_new] * 2 + 1])
    arrays = [_to_type([old.filter(was), new], shape, at) for at, (old, new) in enumerate(zip(before, after, strict=True))]
    written = pa.concat_arrays([pa.array(["d"] * int(gone.sum()), pa.string()), pa.array(ops, pa.string())])
    return order, pa.table([*arrays, written], names=[*shape.schema.names, OP])


def _column(tuples: Tuples, relation: Relation, name: str) -> pa.Array:
    if name not in relation.columns:
        return pa.nulls(len(tuples.ends), pa.string())
    return tuples.texts(relation.columns.index(name))


def _after(images: Images, relation: Relation, name: str, before: pa.Array, shape: ChangeShape) -> pa.Array:
    """A column of the new rows, with values that the log omits filled in where known."""
    found = _column(images.new, relation, name)
    if name not in relation.columns:
        return found
    missing = images.new.unchanged(relation.columns.index(name))
    if not missing.any():
        return found
    place = np.cumsum(images.has_old) - 1
    known = (images.has_old & images.full)[images.has_new]
    if (missing & ~known).any() and shape.unchanged == "fail":
        message = f"an update of `{shape.table}` did not change `{name}`, and the log does not contain its value"
        help_ = f"ALTER TABLE {shape.table} REPLICA IDENTITY FULL; or `unchanged: null` uses null"
        raise RunError(Diagnostic("MS125", message, help=help_))
    taken = pa.array(np.where(known, place[images.has_new], 0), mask=~known)
    return pc.if_else(pa.array(missing), before.take(taken), found)


def _key_changed(images: Images, before: Sequence[pa.Array], after: Sequence[pa.Array], shape: ChangeShape) -> Mask:
    """Updates that changed the key."""
    both = images.has_old & images.has_new
    moved = np.zeros(len(images.index), bool)
    if not both.any():
        return moved
    old, new = pa.array(both[images.has_old]), pa.array(both[images.has_new])
    for name in shape.key:
        at = shape.schema.names.index(name)
        differs = pc.fill_null(pc.not_equal(before[at].filter(old), after[at].filter(new)), False)
        moved[both] |= np.asarray(differs).astype(bool)
    return moved


def _to_type(parts: list[pa.Array], shape: ChangeShape, at: int) -> pa.Array:
    field = shape.schema.field(at)
    try:
        return from_text(pa.concat_arrays(parts), field.type)
    except pa.ArrowInvalid as error:
        message = f"a change of `{shape.table}` does not fit column `{field.name}`, which is read as {field.type}: {error}"
        raise RunError(Diagnostic("MS129", message, help=f"`types: {{{field.name}: string}}` accepts every value")) from None
