"""How many rows passed a point of a plan, without a second pass and without `Observation`, which waits for Spark's event queue
(90 ms an epoch): a filter that lets everything through, and Spark's own count of what left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALWAYS = "spark_partition_id() >= 0"
"""True for every row, and opaque to the optimizer, which would remove a plain `true`."""


def with_counter(frame: DataFrame) -> DataFrame:
    return frame.where(_ALWAYS)


def counted(frame: DataFrame) -> int:
    """The rows that passed the topmost counter of a frame that has been run."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    while not (_kind(plan) == "FilterExec" and "SPARK_PARTITION_ID" in plan.condition().sql().upper()):
        plan = plan.executedPlan() if _kind(plan) == "AdaptiveSparkPlanExec" else plan.children().apply(0)
    return int(plan.metrics().apply("numOutputRows").value())


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())
