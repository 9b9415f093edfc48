"""The cheapest sink: runs the epoch's plan to its last row and keeps the count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from millstream.plan.components import Epoch, Guarantee, Sink, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BlackholeSink(Sink):
    """Computes every row, counts it and writes nothing: for trying a pipeline out and for measuring one."""

    type: ClassVar[str] = "blackhole"
    summary: ClassVar[str] = "Count rows and forget them."
    example: ClassVar[str] = """
        all:
          type: blackhole
          from: orders
    """
    best: ClassVar[Guarantee] = "at_least_once"

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        execution: Any = frame._jdf.queryExecution()
        plan = execution.analyzed()
        # an epoch that nothing has been done to is an RDD already: counting that one spares a plan, and a copy of every row
        rows = plan.rdd() if plan.nodeName() == "LogicalRDD" and not frame.is_cached else execution.toRdd()
        return Staged(int(rows.count()))
