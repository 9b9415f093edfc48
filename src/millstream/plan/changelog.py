"""Changelogs: streams whose rows say what happened to a row of a table.

`_op` is `i`, `u` or `d` (`_gs_op` is read as the same), `_seq` the row's place in its source. Both travel by themselves: a projection that
does not name them keeps them. A condition means more on a changelog than on plain rows: an update that does not pass takes the old row
with it, so it becomes a delete; deletes pass always; an insert that does not pass is dropped. A query that looks at `_op` itself is left
as it is written.
"""

from __future__ import annotations

from collections.abc import Iterable

OP = "_op"
OPS = (OP, "_gs_op")
SEQUENCE = "_seq"
INSERT, UPDATE, DELETE = "i", "u", "d"


def op_of(names: Iterable[str]) -> str:
    """The column that says what happened, among these; empty for plain rows."""
    known = set(names)
    return next((op for op in OPS if op in known), "")


def carried(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that travel by themselves, among these."""
    known = set(names)
    op = op_of(known)
    return (*([op] if op else []), *([SEQUENCE] if op and SEQUENCE in known else []))
