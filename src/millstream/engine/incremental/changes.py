"""The changes of a result as a changelog: `i` is a new row, `u` replaces the row with its key, and `d` removes it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.weights import WEIGHT
from millstream.plan.changelog import DELETE, INSERT, OP, UPDATE


def with_ops(frame: DataFrame, key: tuple[str, ...] | None) -> DataFrame:
    """Changes with `_op` in place of the weight; the frame is consolidated. Without a key a row is identified by all its columns."""
    columns = [name for name in frame.columns if name != WEIGHT]
    if key is None:
        op = f"if({WEIGHT} > 0, '{INSERT}', '{DELETE}') AS {OP}"
        repeated = frame.selectExpr(*columns, op, f"explode(array_repeat(0, cast(abs({WEIGHT}) AS int))) AS copy")
        return repeated.select(*columns, OP)
    grouped = frame.groupBy(*key).agg(
        F.expr(f"max_by(struct({', '.join(columns)}), {WEIGHT}) AS row"),
        F.expr(f"max({WEIGHT}) AS most"),
        F.expr(f"min({WEIGHT}) AS least"),
    )
    op = f"CASE WHEN most < 0 THEN '{DELETE}' WHEN least < 0 THEN '{UPDATE}' ELSE '{INSERT}' END AS {OP}"
    return grouped.where("most IS NOT NULL").selectExpr(*[f"row.{name} AS {name}" for name in columns], op)
