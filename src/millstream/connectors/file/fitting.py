"""Values of `partition_by` that cannot be the name of a directory: longer than the file system takes, or with a NUL character.

A directory is called `column=value`; Spark writes some characters as `%2F`, and the file system counts bytes. Where the node's `on_error`
is `fail`, such a row stops the query, with the column and the beginning of the value. Otherwise it is a bad row like those of any node.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING

from millstream.plan.components import REJECT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MARK = "millstream-partition"
LIMIT = 255
"""Bytes of a name, on Linux, macOS and HDFS."""
_ESCAPED = r"""[\x01-\x1F\x7F"#%'*/:=?\\{\[\]^]"""
_SHOWN = 40


def required(frame: DataFrame, partition_by: tuple[str, ...], node: str) -> DataFrame:
    """The rows; one that fits no directory fails."""
    from pyspark.sql import functions as F

    found = _complaint(frame, partition_by)
    if found is None:
        return frame
    said = F.concat(F.lit(f"{MARK}: {node}: "), found)
    return frame.where(F.when(found.isNull(), F.lit(True)).otherwise(F.raise_error(said).cast("boolean")))


def told_apart(frame: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """The rows, with a reject for those that fit no directory."""
    from pyspark.sql import functions as F

    found = _complaint(frame, partition_by)
    nothing = F.lit(None).cast("struct<raw: string, error: string>")
    if found is None:
        return frame.withColumn(REJECT, nothing)
    row = F.struct(*[_quoted(name) for name in frame.columns])
    raw = F.to_json(row, {"ignoreNullFields": "false"})
    return frame.withColumn(REJECT, F.when(found.isNotNull(), F.struct(raw.alias("raw"), found.alias("error"))).otherwise(nothing))


def _complaint(frame: DataFrame, partition_by: tuple[str, ...]) -> Column | None:
    """Null for a row that fits; else the reason. None when no column can hold such a value."""
    from pyspark.sql import functions as F

    types = dict(frame.dtypes)
    names = [name for name in partition_by if types[name] == "binary" or types[name].startswith(("string", "varchar", "char"))]
    reasons = [_reason(name) for name in names]
    return reduce(F.coalesce, reasons) if reasons else None


def _reason(name: str) -> Column:
    from pyspark.sql import functions as F

    value = _quoted(name).cast("string")
    named = name.replace("%", "%%")
    room = LIMIT - len(re.sub(_ESCAPED, "%00", name).encode()) - 1
    size = F.octet_length(F.regexp_replace(value, _ESCAPED, "%00"))
    shown = F.regexp_replace(F.left(value, F.lit(_SHOWN)), r"\p{Cntrl}", " ")
    long = F.format_string(f"`{named}` has %d bytes as part of a directory's name, and at most {room} fit: `%s…`", size, shown)
    nul = F.format_string(f"`{named}` holds a NUL character, which no directory can have in its name: `%s…`", shown)
    short = F.octet_length(value) * 3 <= room  # whatever is escaped; the usual case, and cheap
    return F.when(F.instr(value, "\0") > 0, nul).when(~short & (size > room), long)


def _quoted(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(f"`{name.replace('`', '``')}`")
