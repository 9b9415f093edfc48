"""Checks a primary key that the user has declared and that does not follow from the query: no two rows of the result may share it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, consolidated, partitioned
from millstream.worker import marks

_SHARED = "MS176"


def require_unique(tracing: Tracing, number: int, changes: DataFrame, key: tuple[str, ...], names: tuple[str, ...], node: str) -> None:
    """Keep the number of rows per key; an epoch that makes it greater than 1 fails before any sink commits it."""
    hashed = changes.selectExpr(f"xxhash64({', '.join(key)}) AS {HASH}", *key, WEIGHT)
    counts = tracing.cut(partitioned(hashed, tracing.partitions).groupBy(HASH, *key).agg(F.expr(f"sum({WEIGHT}) AS {WEIGHT}")))
    store = tracing.store(number, "keys", counts)
    now = consolidated(counts.union(store.at(counts.select(HASH)).select(*counts.columns)))
    shown = ", ".join(f"'{name}', {place}" for name, place in zip(names, key, strict=True))
    before = f"{marks.refusal(_SHARED, node, 'primary_key')}two rows of the result have the key "
    message = f"concat({_literal(before)}, to_json(named_struct({shown})))"
    checked = now.selectExpr(HASH, *key, f"if({WEIGHT} > 1, cast(raise_error({message}) AS bigint), {WEIGHT}) AS total")
    valid = checked.selectExpr(HASH, *key, f"total * 0 AS {WEIGHT}").union(counts.selectExpr(HASH, *key, WEIGHT))
    store.add(tracing.cut(consolidated(valid).select(*counts.columns)))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
