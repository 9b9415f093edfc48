"""A tested view whose outputs are rows with a weight."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from tests.sql.random.oracle import Answer, Rows, WrongError, changes_of, sum_of


class Weighted:
    """Adds up the outputs."""

    def __init__(self) -> None:
        self.got = Rows()

    def changes(self, epoch: int) -> DataFrame:
        raise NotImplementedError

    def step(self, epoch: int) -> Answer:
        out = self.changes(epoch)
        self.got = sum_of(self.got, changes_of(out))
        negative = {row: weight for row, weight in self.got.items() if weight < 0}
        if negative:
            raise WrongError("negative weight", f"negative weights {negative}")
        return Answer(StructType(out.schema.fields[:-1]), tuple(self.got.elements()))
