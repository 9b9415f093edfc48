"""What is tested: the engine as a pipeline uses it, its view alone, and the controls by their names."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from tests.sql.random.cases import Case
from tests.sql.random.feeds import arriving, feed_of
from tests.sql.random.kept import Ending, Kept
from tests.sql.random.oracle import RefusedError, Stepping, ViewMaker
from tests.sql.random.reference import Forgetful, Growing, Recomputing
from tests.sql.random.weighted import Weighted

from millstream.engine.incremental.analysis import Analysis, query_over
from millstream.engine.incremental.compilation import with_weights
from millstream.engine.incremental.relations import Refused
from millstream.engine.incremental.view import View
from millstream.engine.incremental.weights import consolidated

REPEATED, RESTARTED = 6, 5
"""One of so many cases computes every second epoch twice, or continues in a new view from the state of the old one, as after a crash."""
FINAL = 5
"""One of so many cases asks for the result at the end alone."""


class Subject(Weighted):
    """The engine's view of a case's query."""

    def __init__(self, spark: SparkSession, case: Case) -> None:
        super().__init__()
        self.spark, self.case = spark, case
        self.view = self._new()

    def _new(self) -> View:
        feeds = {table.name: feed_of(table) for table in self.case.tables}
        try:
            view = View(Analysis(self.spark, feeds, query_over(self.case.query)), partitions=2)
            view.compile(with_weights)
        except Refused as refused:
            raise RefusedError(refused.reason) from refused
        return view

    def changes(self, epoch: int) -> DataFrame:
        """The rows of an epoch are computed when they are read, so the epoch before it ends here."""
        if epoch:
            self.view.finish(epoch - 1)
        if epoch == 2 and self.case.seed % RESTARTED == 1:
            self._restart(epoch - 1)
        if epoch % 2 and self.case.seed % REPEATED == 1:
            self.view.step(epoch, arriving(self.spark, self.case, epoch)).collect()
        return self.view.step(epoch, arriving(self.spark, self.case, epoch))

    def _restart(self, epoch: int) -> None:
        old, new = self.view, self._new()
        rows = old.state(epoch).localCheckpoint()
        stored = new.stored_rows
        new.adopt(epoch, {name: (stored.fragment(name, consolidated(stored.part(rows, name))),) for name in stored.stores})
        self.view = new
        old.close()

    def close(self) -> None:
        self.view.close()


def engine(spark: SparkSession, case: Case) -> Stepping:
    return Kept(spark, case) if case.seed % FINAL else Ending(spark, case)


SUBJECTS: dict[str, ViewMaker] = {
    "engine": engine,
    "kept": Kept,
    "final": Ending,
    "view": Subject,
    "recomputing": Recomputing,
    "forgetful": Forgetful,
    "growing": Growing,
}
