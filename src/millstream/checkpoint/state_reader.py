"""Reads the state of a stopped pipeline with Spark's state data source, as of the last committed epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.checkpoint.inventory import Inventory, Operator, StoredQuery, operators
from millstream.checkpoint.layout import Checkpoint, QueryCheckpoint
from millstream.errors import Diagnostic, UsageError, nearest
from millstream.plan.cutting import QueryPlan

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class StateTable:
    """One table of state: of an operator, or of one side or variable of it."""

    operator: Operator
    label: str
    """`left` or `right` of a join, the name of a variable, or nothing."""
    frame: DataFrame

    def keys(self) -> list[str]:
        kind = self.frame.schema["key"].dataType if "key" in self.frame.columns else None
        return kind.names if isinstance(kind, StructType) else []


def with_row_counts(spark: SparkSession, inventory: Inventory, checkpoint: Checkpoint) -> Inventory:
    """The inventory with the number of state rows of every operator."""
    queries = tuple(_with_row_counts(spark, query, checkpoint.query(query.name)) for query in inventory.queries)
    return replace(inventory, queries=queries)


def parts(spark: SparkSession, query: QueryCheckpoint, chosen: Sequence[Operator]) -> list[StateTable]:
    """The tables of these operators."""
    return [part for operator in chosen for part in _parts(spark, query.url, operator)]


def operators_of(node: str, plan: QueryPlan, query: QueryCheckpoint) -> tuple[Operator, ...]:
    """The operators of a node. Spark numbers them from the end of the plan to its beginning."""
    found = operators(query.storage) if query.last_committed() >= 0 else ()
    stateful = [step.name for step in plan.above if step.stateful]
    if len(found) == len(stateful) > 1 and node in stateful:
        return (found[len(stateful) - 1 - stateful.index(node)],)
    return found


def rows(part: StateTable, key: Sequence[str], limit: int) -> list[dict[str, Any]]:
    """The first rows of a table, by key, as dictionaries."""
    frame = part.frame.where(_matches(part, key)) if key else part.frame
    columns = [name for name in frame.columns if name not in {"partition_id", "expiration_timestamp"}]
    ordered = frame.select(*columns).orderBy("key") if "key" in columns else frame.select(*columns)
    found: list[dict[str, Any]] = ordered.limit(limit).toArrow().to_pylist()
    return found


def _with_row_counts(spark: SparkSession, query: StoredQuery, checkpoint: QueryCheckpoint) -> StoredQuery:
    if query.committed < 0:
        return query
    known = [
        operator
        if operator.rows is not None
        else replace(operator, rows=sum(part.frame.count() for part in _parts(spark, checkpoint.url, operator)))
        for operator in query.operators
    ]
    return replace(query, operators=tuple(known))


def _parts(spark: SparkSession, url: str, operator: Operator) -> Iterator[StateTable]:
    _ = spark.streams.active  # state stores report to a coordinator, which exists after the first use of `streams`

    def read(**options: str) -> DataFrame:
        return spark.read.format("statestore").options(operatorId=str(operator.id), **options).load(url)

    variables = (operator.properties or {}).get("stateVariables", []) if isinstance(operator.properties, dict) else []
    if operator.joins:
        yield from (StateTable(operator, side, read(joinSide=side)) for side in _SIDES)
    elif variables:
        names = [str(variable["stateName"]) for variable in variables if not str(variable["stateName"]).startswith("$")]
        yield from (StateTable(operator, name, read(stateVarName=name)) for name in names)
    else:
        yield StateTable(operator, "", read())


def _matches(part: StateTable, key: Sequence[str]) -> Column:
    """`VALUE` matches by the order of the key's columns, `COLUMN=VALUE` by name."""
    names, condition = part.keys(), F.lit(True)
    for position, text in enumerate(key):
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            name, value = (names[position] if position < len(names) else ""), text
        if not name:
            message = f"the key has {len(names)} columns, and `--key` is given {len(key)} times"
            raise UsageError(Diagnostic("MS008", message, help=nearest("", names)))
        condition = condition & (F.col("key").getField(name).cast("string") == F.lit(value))
    return condition
