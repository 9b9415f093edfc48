"""Rejects values of `partition_by` that cannot be a directory name: too long for the file system, or with a NUL character.

A directory is called `column=value`; Spark writes some characters as `%2F`, and the file system counts bytes. Where the node's `on_error`
is `fail`, such a row stops the query, with the column and the beginning of the value. Otherwise it is a reject.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING

from millstream.plan.components import REJECT
from millstream.plan.expressions import quote_column
from millstream.worker import marks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LIMIT = 255
"""The most bytes of a name, on Linux, macOS and HDFS."""
_ESCAPED = r"""[\x01-\x1F\x7F"#%'*/:=?\\{\[\]^]"""
_SHOWN = 40


def fail_on_bad_names(frame: DataFrame, partition_by: tuple[str, ...], node: str) -> DataFrame:
    """The rows; a row without a valid directory name fails."""
    from pyspark.sql import functions as F

    found = _complaint(frame, partition_by)
    if found is None:
        return frame
    said = F.concat(F.lit(marks.refusal("MS166", node, "partition_by")), found)
    return frame.where(F.when(found.isNull(), F.lit(True)).otherwise(F.raise_error(said).cast("boolean")))


def with_name_rejects(frame: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """The rows; a row without a valid directory name is a reject."""
    from pyspark.sql import functions as F

    found = _complaint(frame, partition_by)
    nothing = F.lit(None).cast("struct<raw: string, error: string>")
    if found is None:
        return frame.withColumn(REJECT, nothing)
    row = F.struct(*[_quote(name) for name in frame.columns])
    raw = F.to_json(row, {"ignoreNullFields": "false"})
    return frame.withColumn(REJECT, F.when(found.isNotNull(), F.struct(raw.alias("raw"), found.alias("error"))).otherwise(nothing))


def _complaint(frame: DataFrame, partition_by: tuple[str, ...]) -> Column | None:
    """Null for a valid row; else the reason. None when no column can have such a value."""
    from pyspark.sql import functions as F

    types = dict(frame.dtypes)
    names = [name for name in partition_by if types[name] == "binary" or types[name].startswith(("string", "varchar", "char"))]
    reasons = [_reason(name) for name in names]
    return reduce(F.coalesce, reasons) if reasons else None


def _reason(name: str) -> Column:
    from pyspark.sql import functions as F

    value = _quote(name).cast("string")
    named = name.replace("%", "%%")
    room = LIMIT - len(re.sub(_ESCAPED, "%00", name).encode()) - 1
    size = F.octet_length(F.regexp_replace(value, _ESCAPED, "%00"))
    shown = F.regexp_replace(F.left(value, F.lit(_SHOWN)), r"\p{Cntrl}", " ")
    long = F.format_string(f"`{named}` has %d bytes as part of a directory's name, and at most {room} fit: `%s…`", size, shown)
    nul = F.format_string(f"`{named}` contains a NUL character, which is not allowed in a directory name: `%s…`", shown)
    short = F.octet_length(value) * 3 <= room  # also when everything is escaped; the common case, and cheap
    return F.when(F.instr(value, "\0") > 0, nul).when(~short & (size > room), long)


def _quote(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quote_column(name))
