"""What is tested: the engine's view, and the controls by their names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from tests.sql.random.cases import Case
from tests.sql.random.oracle import RefusedError, ViewMaker
from tests.sql.random.reference import Forgetful, Growing, Recomputing

from millstream.engine.incremental.arrivals import arrivals, of_weights
from millstream.engine.incremental.compilation import query_over, with_weights
from millstream.engine.incremental.relations import Refused
from millstream.engine.incremental.view import View
from millstream.engine.incremental.weights import consolidated

REPEATED, RESTARTED = 6, 5
"""One of so many cases computes every second epoch twice, or continues in a new view from the state of the old one, as after a crash."""


class Subject:
    """The engine's view of a case's query."""

    def __init__(self, spark: SparkSession, case: Case) -> None:
        self.spark, self.case = spark, case
        self.view = self._new()

    def _new(self) -> View:
        feeds = {table.name: of_weights(table.schema, table.append_only) for table in self.case.tables}
        try:
            view = View(self.spark, feeds, query_over(self.case.query), partitions=2)
            view.compile(with_weights)
        except Refused as refused:
            raise RefusedError(refused.reason) from refused
        return view

    def step(self, epoch: int, changes: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of an epoch are computed when they are read, so the epoch before it ends here."""
        if epoch:
            self.view.finish(epoch - 1)
        if epoch == 2 and self.case.seed % RESTARTED == 1:
            self._restart(epoch - 1)
        if epoch % 2 and self.case.seed % REPEATED == 1:
            self.view.step(epoch, arrivals(changes)).collect()
        return self.view.step(epoch, arrivals(changes))

    def _restart(self, epoch: int) -> None:
        old, new = self.view, self._new()
        rows = old.state(epoch).localCheckpoint()
        stored = new.stored_rows
        new.adopt(epoch, {name: (stored.fragment(name, consolidated(stored.part(rows, name))),) for name in stored.stores})
        self.view = new
        old.close()

    def close(self) -> None:
        self.view.close()


SUBJECTS: dict[str, ViewMaker] = {"view": Subject, "recomputing": Recomputing, "forgetful": Forgetful, "growing": Growing}
