"""The plan becomes DataFrames: once for what streams into a query's root, and once per epoch for what stands below it.

Bad rows above a root leave the streaming plan as rows of their own: the root's frame is a union of its rows and of the rejects,
told apart by the column `REJECT`. Below the root every node that isolates bad rows has that column in its own frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.engine.checkpoint import Checkpoint
from millstream.plan.components import REJECT, NodeContext, Source, Transform
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node

REJECT_TYPE = "struct<node: string, raw: string, error: string>"


@dataclass(frozen=True)
class Lowering:
    """What is needed to turn nodes into frames."""

    spark: SparkSession
    checkpoint: Checkpoint
    directory: Path
    schemas: Mapping[str, pa.Schema | None] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Values of secrets, which no dead letter may hold."""

    def streaming(self, plan: QueryPlan) -> DataFrame:
        """The frame that a query's epochs are cut from."""
        frames: dict[str, DataFrame] = {}
        rejects: list[DataFrame] = []
        for node in plan.streamed:
            inputs = {name: visible(frames[name], plan.node(name), node) for name in node.inputs}
            frame = self.lower(node, inputs, self.spark)
            frames[node.name] = frame
            if node.isolates and node is not plan.root:
                frames[node.name] = good(frame)
                if node.name in plan.owned:
                    rejects.append(bad(frame, node))
        root = frames[plan.outlet.name]
        return _tagged(root, plan.root, rejects) if rejects else root

    def lower(self, node: Node, frames: Mapping[str, DataFrame], spark: SparkSession, clock: str = "") -> DataFrame:
        context = self.context(node, clock)
        if isinstance(node.component, Source):
            return node.component.read(spark, context)
        assert isinstance(node.component, Transform)
        return node.component.apply({name: frames[name] for name in node.inputs}, context)

    def context(self, node: Node, clock: str = "") -> NodeContext:
        return NodeContext(
            node.name,
            self.directory,
            self.checkpoint.node(node.name),
            isolate=node.isolates,
            schema=self.schemas.get(node.name),
            clock=clock,
        )


def visible(frame: DataFrame, node: Node, reader: Node | None = None) -> DataFrame:
    """The rows of a node that a reader sees: not those of its side outputs, unless it asks for them."""
    column = node.component.side_column if isinstance(node.component, Transform) else ""
    if not column or (reader is not None and isinstance(reader.component, Transform) and reader.component.reads_sides):
        return frame
    return frame.where(F.col(column).isNull()).drop(column)


def good(frame: DataFrame) -> DataFrame:
    return frame.where(F.col(REJECT).isNull()).drop(REJECT)


def bad(frame: DataFrame, node: Node) -> DataFrame:
    """The rejects of one node, as one column that says whose they are."""
    tagged = F.struct(F.lit(node.name).alias("node"), F.col(f"{REJECT}.raw"), F.col(f"{REJECT}.error"))
    return frame.where(F.col(REJECT).isNotNull()).select(tagged.cast(REJECT_TYPE).alias(REJECT))


def _tagged(root: DataFrame, node: Node, rejects: list[DataFrame]) -> DataFrame:
    if node.isolates:
        rejects = [*rejects, bad(root, node)]
        root = good(root)
    rows = root.withColumn(REJECT, F.lit(None).cast(REJECT_TYPE))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), rejects, rows)
