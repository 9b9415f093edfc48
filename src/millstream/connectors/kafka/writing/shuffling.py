"""The rows of an epoch on their way into lanes: computed now, written later, and no file of ours in between.

Spark's shuffle writes what its tasks compute into files of its own before anybody reads them. So its first half is run when the epoch is
staged (whatever fails in computing a row fails here, while nothing is visible), and its second half when it is committed. Rounds that are
repeated for a lane read the same files. They do not outlive the driver: whoever repeats the epoch after that computes it again, which
is right only for rows that are the same each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Rows in lanes, one partition each."""

    frame: DataFrame
    rows: int


def into_lanes(messages: DataFrame, lanes: int) -> DataFrame:
    """One partition per lane."""
    return messages.repartitionById(lanes, "lane")


def shuffle(messages: DataFrame, lanes: int) -> Shuffled:
    """Compute the rows. The frame that comes back can be read as often as need be, and computes nothing."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    divided = into_lanes(messages, lanes)
    session, execution = divided.sparkSession, divided._jdf.queryExecution()
    rdd = execution.toRdd()  # the adaptive planner runs what comes before an exchange, to learn how large it is
    read = session._jsparkSession.internalCreateDataFrame(rdd, divided._jdf.schema(), False)
    counted = _counted(execution.executedPlan())
    return Shuffled(ClassicDataFrame(read, session), int(rdd.count()) if counted is None else counted)


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
