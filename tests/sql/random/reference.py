"""Controls of the harness: a right implementation, which computes everything anew, and wrong ones."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tests.sql.random.cases import Case, Change, Row, Table, changed
from tests.sql.random.oracle import SETTINGS, frame_of, new_session
from tests.sql.random.weighted import Weighted


class Recomputing(Weighted):
    """Evaluates the query over all rows, and emits the difference to the last answer."""

    def __init__(self, spark: SparkSession, case: Case) -> None:
        super().__init__()
        self.spark = new_session(spark, SETTINGS)
        self.case = case
        self.tables: dict[str, list[Row]] = {table.name: [] for table in case.tables}
        self.last: list[Row] = []

    def changes(self, epoch: int) -> DataFrame:
        for table in self.case.tables:
            self.tables[table.name] = self.rows_after(table, self.case.epochs[epoch].get(table.name, ()))
            frame_of(self.spark, self.tables[table.name], table.schema).createOrReplaceTempView(table.name)
        answer = self.spark.sql(self.case.query)
        rows = [tuple(row) for row in answer.collect()]
        schema = StructType([*answer.schema.fields, StructField("_w", LongType(), nullable=False)])
        return frame_of(self.spark, self.output(rows), schema)

    def close(self) -> None:
        """Nothing is held."""

    def rows_after(self, table: Table, changes: tuple[Change, ...]) -> list[Row]:
        return changed(table, self.tables[table.name], changes)

    def output(self, rows: list[Row]) -> list[Row]:
        found = [*((*row, 1) for row in rows), *((*row, -1) for row in self.last)]
        self.last = rows
        return found


class Forgetful(Recomputing):
    """Wrong: evaluates the query over the rows that the epoch inserts."""

    def rows_after(self, table: Table, changes: tuple[Change, ...]) -> list[Row]:
        return [row for row, weight in changes if weight > 0]

    def output(self, rows: list[Row]) -> list[Row]:
        return [(*row, 1) for row in rows]


class Growing(Recomputing):
    """Wrong: takes nothing back."""

    def output(self, rows: list[Row]) -> list[Row]:
        return [row for row in super().output(rows) if row[-1] > 0]
