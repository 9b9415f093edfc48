"""The cheapest sink: computes all rows of an epoch and counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from millstream.plan.components import Epoch, Guarantee, NodeContext, Sink, SinkRun, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BlackholeSink(Sink):
    """Computes every row, counts it and writes nothing: to try out or measure a pipeline."""

    type: ClassVar[str] = "blackhole"
    summary: ClassVar[str] = "Count rows and discard them."
    commit_method: ClassVar[str] = "rows are counted; a repeated epoch is counted again"
    example: ClassVar[str] = """
        all:
          type: blackhole
          from: orders
    """
    best: ClassVar[Guarantee] = "at_least_once"

    def open(self, context: NodeContext) -> BlackholeSinkRun:
        return BlackholeSinkRun(context)


class BlackholeSinkRun(SinkRun[None]):
    """Counts the rows of each epoch."""

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[None]:
        execution: Any = frame._jdf.queryExecution()
        plan = execution.analyzed()
        # an unchanged epoch is already an RDD: counting it avoids a new plan and a copy of every row
        rows = plan.rdd() if plan.nodeName() == "LogicalRDD" and not frame.is_cached else execution.toRdd()
        return Staged(int(rows.count()), None)
