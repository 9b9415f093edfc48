"""Changelogs: streams whose rows describe changes to the rows of a table.

`_op` is `i`, `u` or `d` (`_gs_op` is accepted as the same); `_seq` is the row's position in its source. A projection keeps both columns
even if it does not name them.
A filter on a changelog works differently from one on plain rows: an update that does not match becomes a delete, because its old row may
have matched; deletes always pass; an insert that does not match is dropped. A query that reads `_op` itself is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from millstream.plan.tracing import TRACED

OP = "_op"
OPS = (OP, "_gs_op")
SEQUENCE = "_seq"
INSERT, UPDATE, DELETE = "i", "u", "d"


def op_of(names: Iterable[str]) -> str:
    """The column with the op, among these; empty for plain rows."""
    known = set(names)
    return next((op for op in OPS if op in known), "")


def kept_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that every projection keeps, among these: those of a changelog, and that of traced records."""
    known = set(names)
    op = op_of(known)
    return (*([op] if op else []), *([SEQUENCE] if op and SEQUENCE in known else []), *([TRACED] if TRACED in known else []))


def table_of(schema: pa.Schema | None) -> pa.Schema | None:
    """The columns of the table that a changelog describes; those of plain rows as they are."""
    if schema is None or not op_of(schema.names):
        return schema
    return pa.schema([field for field in schema if field.name not in {*OPS, SEQUENCE}])
