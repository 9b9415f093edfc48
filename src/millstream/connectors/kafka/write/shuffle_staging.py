"""Stages the rows of an epoch in Spark's shuffle, divided into lanes: computed now, written later, without files of our own.

Spark's shuffle writes the output of its tasks into files before anything reads them. So its first half runs when the epoch is staged (a
failure in computing a row happens here, while nothing is visible), and its second half when it is committed. Retries of a lane read the
same files. The files end with the driver: a repetition after that computes the rows again, which is correct only for deterministic rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.plan.changelog import SEQUENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUM = "millstream_sum"


@dataclass(frozen=True, slots=True)
class ShuffledRows:
    """Rows in lanes, one partition each."""

    frame: DataFrame
    rows: int
    bytes: int
    hash: str
    """A checksum of all rows and their lanes, independent of their order; empty: unknown."""


def into_lanes(messages: DataFrame, lanes: int) -> DataFrame:
    """One partition per lane."""
    return messages.repartitionById(lanes, "lane")


def shuffle(messages: DataFrame, lanes: int) -> ShuffledRows:
    """Compute the rows. The returned frame can be read many times without computing again."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    divided = into_lanes(_with_checksum(messages), lanes)
    session, execution = divided.sparkSession, divided._jdf.queryExecution()
    rdd = execution.toRdd()  # the adaptive planner runs the input of an exchange to find its size
    read = session._jsparkSession.internalCreateDataFrame(rdd, divided._jdf.schema(), False)
    exchange = _exchange(execution.executedPlan())
    counted = _metric(exchange, "shuffleRecordsWritten") if exchange is not None else 0
    rows = counted or int(rdd.count())
    size = _metric(exchange, "dataSize") if exchange is not None else 0
    return ShuffledRows(ClassicDataFrame(read, session), rows, size, _sum_of(execution) if rows else "0")


def _with_checksum(messages: DataFrame) -> DataFrame:
    """Sums hashes while the rows pass, without an extra job: 32 bits of each row's hash, so that the sum holds two billion rows."""
    from pyspark.sql import functions as F

    contents = [name for name in messages.columns if name not in (SEQUENCE, "place")]
    return messages.observe(_SUM, F.expr(f"sum(xxhash64({', '.join(contents)}) & 4294967295L)").alias("added"))


def _sum_of(execution: Any) -> str:
    found = execution.observedMetrics().get(_SUM)
    return "" if found.isEmpty() or found.get().isNullAt(0) else f"{found.get().getLong(0):x}"


def _exchange(plan: Any) -> Any:
    """The exchange that has written the rows. None: the planner removed it."""
    for _ in range(5):
        name = plan.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif name in {"ResultQueryStageExec", "ShuffleQueryStageExec"}:
            plan = plan.plan()
    return plan if plan.getClass().getSimpleName() == "ShuffleExchangeExec" else None


def _metric(exchange: Any, name: str) -> int:
    """Zero: it has not run yet."""
    return int(exchange.metrics().apply(name).value())
