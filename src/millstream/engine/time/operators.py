"""Spark's operators in the current epoch: the times that each watermark saw, the rows that each state store dropped as late, and the
epoch's rows.

Inside `foreachBatch` the executed plan of the epoch is available, with the metrics of the job that just read it. So late rows cost nothing
while there are none: only an epoch in which Spark dropped something is read again, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from millstream.sql.analysed import plans
from millstream.sql.analysed.window_rows import windows_of
from millstream.sql.catalyst.bridge import Bridge

_CHECK = "spark.sql.streaming.unsupportedOperationCheck"
_DROPPED = "numRowsDroppedByWatermark"
_STATEFUL = {
    "StateStoreSaveExec",
    "SessionWindowStateStoreRestoreExec",
    "SessionWindowStateStoreSaveExec",
    "StreamingSymmetricHashJoinExec",
}
"""Operators that drop late rows."""


@dataclass(frozen=True, slots=True)
class Saw:
    """The times that one watermark saw in the epoch."""

    id: str
    rows: int
    latest_ms: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one stateful operator dropped as late (groups, not rows), and its watermark."""

    groups: int
    watermark_ms: int


class Operators:
    """The operators of the epoch that a query is running."""

    def __init__(self, query: Any) -> None:
        self._execution: Any = query.streamingQuery().lastExecution()
        self._nodes = list(_walk(self._execution.executedPlan()))

    def saw(self) -> list[Saw]:
        found = [node for node in self._nodes if _kind(node) == "EventTimeWatermarkExec"]
        stats = [(str(node.nodeId().toString()), node.eventTimeStats().value()) for node in found]
        return [Saw(id_, int(values.count()), int(values.max())) for id_, values in stats]

    def dropped(self) -> list[Dropped]:
        found = []
        for node in self._nodes:
            if _kind(node) in _STATEFUL and node.metrics().contains(_DROPPED):
                watermark = node.eventTimeWatermarkForLateEvents()
                groups = int(node.metrics().apply(_DROPPED).value())
                if groups and watermark.isDefined():
                    found.append(Dropped(groups, int(watermark.get())))
        return found

    def rows(self, alias: str, epoch: DataFrame) -> DataFrame | None:
        """The rows of this epoch at the node of the plan that has the alias."""
        found = (node for node in _walk(self._execution.logical()) if _kind(node) == "SubqueryAlias" and str(node.alias()) == alias)
        return next((_frame(node, epoch) for node in found), None)

    def windows(self, alias: str, epoch: DataFrame) -> list[DataFrame] | None:
        """The windows of these rows, as `windows_of` describes them."""
        (stream,) = plans.children(self._execution.logical())  # the top of the plan is Spark's sink
        found = windows_of(Bridge(epoch.sparkSession), stream, alias)
        return None if found is None else [_frame(plan, epoch) for plan in found]


def _frame(plan: Any, epoch: DataFrame) -> DataFrame:
    epoch.sparkSession.conf.set(_CHECK, "false")  # Spark refuses a stream's leaf in a batch plan
    return Bridge(epoch.sparkSession).frame(plan)


def as_batch(frame: DataFrame) -> DataFrame:
    """The same rows as a plain batch: Spark treats rows of a stream's leaf as a stream, which sinks cannot measure."""
    session: Any = frame.sparkSession._jsparkSession
    rows = session.internalCreateDataFrame(frame._jdf.queryExecution().toRdd(), frame._jdf.schema(), False)
    return ClassicDataFrame(rows, frame.sparkSession)


def _walk(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _walk(children.apply(index))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
