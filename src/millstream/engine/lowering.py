"""The plan becomes DataFrames: once for what streams into a query's root, and once per epoch for what stands below it.

Bad rows above a root leave the streaming plan as rows of their own: the root's frame is a union of its rows and of the rejects,
told apart by the column `REJECT`. Below the root every node that isolates bad rows has that column in its own frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.engine.checkpoint import Checkpoint
from millstream.engine.clocks import stamped, watermark_id, watermarked
from millstream.errors import RunError
from millstream.plan.components import REJECT, NodeContext, Source, Transform, Windowed
from millstream.plan.cutting import QueryPlan
from millstream.plan.declarations import UserFunction
from millstream.plan.nodes import Node
from millstream.state.store import Namespace, Store

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
    functions: tuple[UserFunction, ...] = ()
    """The user's functions that SQL can call."""
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What nodes keep for the length of a run."""
    store: Store | None = None
    """Named values beside the pipeline."""
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Node → its primary key, as far as nodes are built: given, found in the data, or taken over from what it reads."""

    dry: bool = False
    """Whether the plan is only looked at."""

    def streaming(self, plan: QueryPlan) -> Stream:
        """The frame that a query's epochs are cut from."""
        frames: dict[str, DataFrame] = {}
        rejects: list[DataFrame] = []
        clocks: dict[str, str] = {}
        for node in plan.streamed:
            inputs = {name: visible(frames[name], plan.node(name), node) for name in node.inputs}
            event_times = {name: plan.event_time_of(name) for name in node.inputs}
            frame = self.lower(node, self._marked(node, inputs), self.spark, event_times=event_times, watched=node in plan.clocks)
            frames[node.name] = frame
            if node.isolates and node is not plan.root:
                frames[node.name] = good(frame)
                if node.name in plan.owned:
                    rejects.append(bad(frame, node))
            if node in plan.clocks:
                frames[node.name] = watermarked(frames[node.name], node, plan.delay_ms(node), plan.held)
                clocks[watermark_id(frames[node.name])] = node.name
        root = frames[plan.outlet.name]
        return Stream(_tagged(root, plan.root, rejects) if rejects else root, clocks)

    def lower(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        spark: SparkSession,
        clock: str = "",
        event_times: Mapping[str, str] | None = None,
        watched: bool = False,
    ) -> DataFrame:
        context = self.context(node, clock, event_times)
        if isinstance(node.component, Source):
            read = node.component.read(spark, context)
            self._remember_key(node, node.primary_key or node.component.key_columns(context), read)
            return stamped(read, node, clock, watched)
        assert isinstance(node.component, Transform)
        with _told_at(node):
            applied = node.component.apply({name: frames[name] for name in node.inputs}, context)
        self._remember_key(node, node.primary_key or self._inherited(node), applied)
        return stamped(applied, node, clock, watched and not node.stateful)

    def _marked(self, node: Node, frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Inputs of a node that can drop late rows carry a name, by which the rows of an epoch are found again."""
        if not (node.stateful and isinstance(node.component, Windowed)):
            return frames
        return {name: frames[name].alias(input_alias(node.name, name)) for name in node.inputs}

    def context(self, node: Node, clock: str = "", event_times: Mapping[str, str] | None = None) -> NodeContext:
        return NodeContext(
            node.name,
            self.directory,
            self.checkpoint.node(node.name),
            isolate=node.isolates,
            schema=self.schemas.get(node.name),
            clock=clock,
            aggregates=self.aggregates,
            event_times=event_times or {},
            memory=self.memory.setdefault(node.name, {}),
            dry=self.dry,
            shared=self.memory.setdefault("", {}),
            pipeline=self.checkpoint.pipeline,
            primary_key=node.options.primary_key or self._inherited(node),
            store=Namespace(self.store, node.name) if self.store else None,
        )

    def _remember_key(self, node: Node, key: tuple[str, ...], frame: DataFrame) -> None:
        self.keys[node.name] = key if set(key) <= set(frame.columns) else ()

    def _inherited(self, node: Node) -> tuple[str, ...]:
        """The key of the one node that it reads."""
        return self.keys.get(node.inputs[0], ()) if len(node.inputs) == 1 else ()

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Functions that give other values each time."""
        return tuple(used.name for used in self.functions if not used.resolve(self.directory).deterministic)

    @cached_property
    def aggregates(self) -> tuple[str, ...]:
        return tuple(used.name for used in self.functions if used.resolve(self.directory).aggregate)


@contextmanager
def _told_at(node: Node) -> Iterator[None]:
    """What a node finds wrong while it is built is told at its place, and not at that of the sink that asked for its rows."""
    try:
        yield
    except RunError as error:
        raise type(error)([replace(found, span=found.span or node.span) for found in error.diagnostics]) from error


@dataclass(frozen=True, slots=True)
class Stream:
    """A query's streaming plan."""

    frame: DataFrame
    clocks: Mapping[str, str]
    """Spark's identity of a watermark → the node that declares it"""


def input_alias(node: str, name: str) -> str:
    return f"_millstream:{node}:{name}"


def finished(node: Node, frame: DataFrame, lowering: Lowering, clock: str = "") -> DataFrame:
    """What a node does with its results epoch by epoch; bad rows pass it by."""
    component = node.component
    if not isinstance(component, Transform) or not component.finishes:
        return frame
    context = lowering.context(node, clock)
    if REJECT not in frame.columns:
        return component.finish(frame, context)
    done = component.finish(good(frame), context).withColumn(REJECT, F.lit(None).cast(frame.schema[REJECT].dataType))
    return done.unionByName(frame.where(F.col(REJECT).isNotNull()).select(REJECT), allowMissingColumns=True)


def without_rejects(frame: DataFrame) -> DataFrame:
    return frame.withColumn(REJECT, F.lit(None).cast("struct<raw: string, error: string>"))


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
    """The root's rows, its own bad ones among them, and the bad ones from above."""
    named = F.struct(F.lit(node.name).alias("node"), F.col(f"{REJECT}.raw"), F.col(f"{REJECT}.error")) if node.isolates else None
    own = F.lit(None) if named is None else F.when(F.col(REJECT).isNotNull(), named)
    rows = root.withColumn(REJECT, own.cast(REJECT_TYPE))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), rejects, rows)
