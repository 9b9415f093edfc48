"""The rows of an epoch on their way into lanes: computed now, written later, and no file of ours in between.

Spark's shuffle writes what its tasks compute into files of its own before anybody reads them. So its first half is run when the epoch is
staged (whatever fails in computing a row fails here, while nothing is visible), and its second half when it is committed. Rounds that are
repeated for a lane read the same files. They do not outlive the driver: whoever repeats the epoch after that computes it again, which
is right only for rows that are the same each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.plan.changelog import SEQUENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUM = "millstream_sum"


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Rows in lanes, one partition each."""

    frame: DataFrame
    rows: int
    hash: str
    """What all rows and their lanes add up to, in whatever order they come; empty: not known."""


def into_lanes(messages: DataFrame, lanes: int) -> DataFrame:
    """One partition per lane."""
    return messages.repartitionById(lanes, "lane")


def shuffle(messages: DataFrame, lanes: int) -> Shuffled:
    """Compute the rows. The frame that comes back can be read as often as need be, and computes nothing."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    divided = into_lanes(_summed(messages), lanes)
    session, execution = divided.sparkSession, divided._jdf.queryExecution()
    rdd = execution.toRdd()  # the adaptive planner runs what comes before an exchange, to learn how large it is
    read = session._jsparkSession.internalCreateDataFrame(rdd, divided._jdf.schema(), False)
    counted = _counted(execution.executedPlan())
    rows = int(rdd.count()) if counted is None else counted
    return Shuffled(ClassicDataFrame(read, session), rows, _sum_of(execution) if rows else "0")


def _summed(messages: DataFrame) -> DataFrame:
    """Added up while the rows pass, without a job of its own: 32 bits of each row's hash, so that two billion rows fit into a sum."""
    from pyspark.sql import functions as F

    contents = [name for name in messages.columns if name not in (SEQUENCE, "place")]
    return messages.observe(_SUM, F.expr(f"sum(xxhash64({', '.join(contents)}) & 4294967295L)").alias("added"))


def _sum_of(execution: Any) -> str:
    found = execution.observedMetrics().get(_SUM)
    return "" if found.isEmpty() or found.get().isNullAt(0) else f"{found.get().getLong(0):x}"


def _counted(plan: Any) -> int | None:
    """How many rows the exchange has written. None: it has not run yet, or the planner found that there is nothing to exchange."""
    for _ in range(5):
        name = plan.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif name in {"ResultQueryStageExec", "ShuffleQueryStageExec"}:
            plan = plan.plan()
    ran = plan.getClass().getSimpleName() == "ShuffleExchangeExec"
    return int(plan.metrics().apply("shuffleRecordsWritten").value()) or None if ran else None
