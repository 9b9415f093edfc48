"""What is tested: the engine's view, and the controls by their names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from tests.sql.random.cases import Case
from tests.sql.random.oracle import RefusedError, ViewMaker
from tests.sql.random.reference import Forgetful, Growing, Recomputing

from millstream.engine.incremental.arrivals import arrivals, of_weights
from millstream.engine.incremental.relations import Refused
from millstream.engine.incremental.view import View, query_over, with_weights

REPEATED = 6
"""One of so many cases computes every second epoch twice, as after a crash."""


class Subject:
    """The engine's view of a case's query."""

    def __init__(self, spark: SparkSession, case: Case) -> None:
        feeds = {table.name: of_weights(table.schema, table.append_only) for table in case.tables}
        self.repeats = case.seed % REPEATED == 1
        try:
            self.view = View(spark, feeds, query_over(case.query), partitions=2)
            self.view.compile(with_weights)
        except Refused as refused:
            raise RefusedError(refused.reason) from refused

    def step(self, epoch: int, changes: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of an epoch are computed when they are read, so the epoch before it ends here."""
        if epoch:
            self.view.finish(epoch - 1)
        if self.repeats and epoch % 2:
            self.view.step(epoch, arrivals(changes)).collect()
        return self.view.step(epoch, arrivals(changes))

    def close(self) -> None:
        self.view.close()


SUBJECTS: dict[str, ViewMaker] = {"view": Subject, "recomputing": Recomputing, "forgetful": Forgetful, "growing": Growing}
