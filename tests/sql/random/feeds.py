"""The tables of a case as inputs of the engine: rows that are only added, rows with a weight, and changelogs."""

from __future__ import annotations

from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tests.sql.random.cases import OPS, Case, Row, Table
from tests.sql.random.oracle import frame_of

from millstream.engine.incremental.arrivals import Feed, arrivals, of_weights


def feed_of(table: Table) -> Feed:
    if table.key:
        schema = StructType([*table.schema.fields]).add("_op", "string")
        return Feed(schema.add("_seq", "long") if table.sequenced else schema, key=table.key, append_only=False)
    return Feed(table.schema) if table.append_only else of_weights(table.schema)


def arriving(spark: SparkSession, case: Case, epoch: int) -> DataFrame:
    """The rows of an epoch."""
    return arrivals({table.name: frame_of(spark, _rows(case, table, epoch), feed_of(table).schema) for table in case.tables})


def _rows(case: Case, table: Table, epoch: int) -> list[Row]:
    changes = case.epochs[epoch].get(table.name, ())
    if table.append_only:
        return [row for row, _ in changes]
    if not table.key:
        return [(*row, weight) for row, weight in changes]
    if not table.sequenced:
        return [(*row, OPS[weight]) for row, weight in changes]
    rows = [(*row, OPS[weight], 1000 * epoch + place) for place, (row, weight) in enumerate(changes)]
    return Random(case.seed).sample(rows, len(rows))
