"""Calls Spark's file writer in a way that returns the number of written rows, without a second pass.

A target size needs one shuffle, which Spark's adaptive planner splits into pieces of about that size. This uses special settings, so the
write runs in a copy of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PIECES = "512"


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write."""

    rows: int
    bytes: int


def write(
    frame: DataFrame, url: str, format_name: str, partition_by: tuple[str, ...], options: Mapping[str, str], size: int | None
) -> Written:
    """Write a frame into a new directory; `size` is that of the shuffled rows of a file."""
    session, java = frame.sparkSession, _Java(frame)
    target = session._jsparkSession
    if size is not None:
        frame = frame.hint("rebalance", *partition_by)
        target = _session_with_size(target, size)
    command = _command(java, target, format_name, partition_by, {**options, "path": url}, frame._jdf.queryExecution().analyzed())
    everything = java("org.apache.spark.sql.execution.CommandExecutionMode").ALL()
    execution = target.sessionState().executePlan(command, everything)
    execution.assertCommandExecuted()
    metrics = _writer(execution.executedPlan().commandPhysicalPlan()).metrics()
    return Written(int(metrics.apply("numOutputRows").value()), int(metrics.apply("numOutputBytes").value()))


class _Java:
    """Java's classes by full name: one round trip each, where `jvm.org.apache…` needs one per dot."""

    def __init__(self, frame: DataFrame) -> None:
        gateway: Any = frame.sparkSession.sparkContext._gateway
        self._client = gateway._gateway_client

    def __call__(self, name: str) -> Any:
        from py4j.java_gateway import JavaClass

        return JavaClass(name, self._client)


def _command(java: _Java, session: Any, format_name: str, partition_by: tuple[str, ...], options: Mapping[str, str], plan: Any) -> Any:
    none, scala = java("scala.Option").empty(), java("org.apache.spark.api.python.PythonUtils")
    source = java("org.apache.spark.sql.execution.datasources.DataSource")(
        session, format_name, scala.toSeq([]), none, scala.toSeq(list(partition_by)), none, scala.toScalaMap(dict(options)), none
    )
    return source.planForWriting(java("org.apache.spark.sql.SaveMode").ErrorIfExists, plan)


def _session_with_size(session: Any, size: int) -> Any:
    copy = session.cloneSession()
    for name, value in {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(size),
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        # pieces are merged up to the size, never split: they must be small at first
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": _PIECES,
    }.items():
        copy.conf().set(name, value)
    return copy


def _writer(plan: Any) -> Any:
    """The node that wrote, below the nodes of the adaptive planner."""
    for _ in range(4):
        name = plan.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif name == "ResultQueryStageExec":
            plan = plan.plan()
    return plan
