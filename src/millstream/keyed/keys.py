"""Keys of stateful transforms: which columns can be keys, and what happens to rows without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.plan import types
from millstream.plan.components import REJECT, NodeContext, Problem
from millstream.plan.expressions import quote_column
from millstream.sql.expressions import only_schema, unknown_names
from millstream.worker import marks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def key_problems(keys: Sequence[str], field: str, inputs: Mapping[str, pa.Schema | None]) -> list[Problem]:
    """Columns that do not exist, or whose values cannot be compared reliably."""
    schema = only_schema(inputs)
    if schema is None:
        return []
    found = unknown_names(keys, field, schema)
    for name in keys:
        index = schema.get_field_index(name)
        kind = schema.field(index).type if index >= 0 else None
        if kind is not None and (pa.types.is_floating(kind) or pa.types.is_map(kind)):
            message = f"`{name}` is {types.name_of(kind)} and cannot be a key"
            found.append(Problem("MS038", message, field, "round it and cast it to a whole number or a decimal before"))
    return found


def flat_key_problems(keys: Sequence[str], field: str, inputs: Mapping[str, pa.Schema | None]) -> list[Problem]:
    """The same, where Arrow compares keys, which does not support nested values."""
    found = key_problems(keys, field, inputs)
    for column in only_schema(inputs) or ():
        if column.name in keys and pa.types.is_nested(column.type) and not pa.types.is_map(column.type):
            message = f"`{column.name}` is {types.name_of(column.type)} and cannot be a key"
            found.append(Problem("MS038", message, field, "take a field of it, or its text"))
    return found


def split_null_keys(frame: DataFrame, keys: Sequence[str], context: NodeContext) -> tuple[DataFrame, DataFrame | None]:
    """The rows that have a key, and the others as rejects; without isolation a null key stops the query."""
    from pyspark.sql import functions as F

    if not keys:
        return frame, None
    present = " AND ".join(f"{quote_column(name)} IS NOT NULL" for name in keys)
    sentence = f"the key {', '.join(f'`{name}`' for name in keys)} is null"
    if not context.isolate:
        refusal = f"raise_error('{marks.refusal('MS073', context.name, 'key_by')}{sentence}')"
        return frame.where(f"CASE WHEN {present} THEN true ELSE CAST({refusal} AS BOOLEAN) END"), None
    raw = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    reject = F.struct(raw.alias("raw"), F.lit(sentence).alias("error")).alias(REJECT)
    return frame.where(present), frame.where(f"NOT ({present})").select(reject)


def with_rejects(rows: DataFrame, rejects: DataFrame | None, context: NodeContext) -> DataFrame:
    """Results and rejects as one frame, in the form that isolation needs."""
    from pyspark.sql import functions as F

    if not context.isolate:
        return rows
    kind = "struct<raw: string, error: string>"
    rows = rows.withColumn(REJECT, F.lit(None).cast(kind))
    return rows if rejects is None else rows.unionByName(rejects.select(F.col(REJECT).cast(kind).alias(REJECT)), allowMissingColumns=True)
