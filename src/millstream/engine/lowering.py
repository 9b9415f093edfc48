"""The plan becomes DataFrames: once for what streams into a query's root, and once per epoch for what stands below it.

Bad rows above a root leave the streaming plan as rows of their own: the root's frame is a union of its rows and of the rejects,
told apart by the column `REJECT`. Below the root every node that isolates bad rows has that column in its own frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from millstream.errors import Diagnostic, RunError
from millstream.logical import plans
from millstream.logical.changelogs import followed, multiplied
from millstream.logical.gate import Refusal, inexact, per_epoch
from millstream.plan.carrying import names_op
from millstream.plan.changelog import op_of
from millstream.plan.components import REJECT, Component, NodeContext, Sink, Source, Transform
from millstream.plan.cutting import QueryPlan
from millstream.plan.declarations import UserFunction
from millstream.plan.nodes import Node
from millstream.plan.rules import text_place
from millstream.state.store import Namespace, Store

_NO_TIME = "1970-01-01 00:00:00.000000"
"""The clock of an epoch that does not run."""
REJECT_TYPE = "struct<node: string, raw: string, error: string>"


@dataclass(frozen=True)
class Lowering:
    """What is needed to turn nodes into frames."""

    spark: SparkSession
    checkpoint: Checkpoint
    directory: Path
    schemas: Mapping[str, pa.Schema | None] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Values of secrets, which no text of a run may tell."""
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
    examined: dict[str, Component] = field(default_factory=dict)
    """Node → the component whose plan was looked at: an earlier plan, with which a half-done epoch is finished, may have another."""
    nondeterministic: dict[str, bool] = field(default_factory=dict)
    """Node → whether Spark calls its plan non-deterministic."""

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

    def examine(self, plan: QueryPlan, stream: Stream) -> None:
        """Build what runs epoch by epoch once on no rows. A step that must not run there, and a changelog that its sink could not apply,
        are refused before the first epoch is planned.
        """
        outlet = plan.outlet
        empty = self.spark.createDataFrame([], stream.frame.schema)
        with _told_at(outlet):
            root = finished(outlet, empty, self, _NO_TIME)
        frames = {outlet.name: good(root) if REJECT in root.columns else root}
        for node in plan.below:
            if node.name not in frames and all(name in frames for name in node.inputs):
                inputs = {name: visible(frames[name], plan.node(name), node) for name in node.inputs}
                frame = self.lower(node, inputs, self.spark, _NO_TIME)
                frames[node.name] = good(frame) if REJECT in frame.columns else frame
        for sink in plan.sinks:
            if sink.inputs and sink.inputs[0] in frames and isinstance(sink.component, Sink):
                with _told_at(sink):
                    sink.component.collapses(frames[sink.inputs[0]].columns, self.context(sink, _NO_TIME))

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
        known = self.examined.get(node.name) is node.component
        examining = not node.stateful and not known
        with _told_at(node):
            inputs = {name: frames[name].alias(input_alias(node.name, name)) if examining else frames[name] for name in node.inputs}
            applied = node.component.apply(inputs, context)
            if not known:  # asked once per run: the answers do not depend on the epoch
                _require(_refusal(node, inputs.values(), applied), node)
                plain = node.component.apply(inputs, replace(context, isolate=False)) if node.isolates else applied
                self.nondeterministic[node.name] = not plans.is_deterministic(plain)
                self.examined[node.name] = node.component
                self._remember_key(node, node.primary_key or self._followed(node, plain), applied)
        return stamped(applied, node, clock, watched and not node.stateful)

    def _marked(self, node: Node, frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Inputs of a node that keeps state carry a name: its own plan ends there, and the rows of an epoch are found again by it."""
        if not node.stateful:
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
            hidden=self.hidden,
            store=Namespace(self.store, node.name) if self.store else None,
        )

    def _remember_key(self, node: Node, key: tuple[str, ...], frame: DataFrame) -> None:
        self.keys[node.name] = key if set(key) <= set(frame.columns) else ()

    def _inherited(self, node: Node) -> tuple[str, ...]:
        """The key of the one node that it reads."""
        return self.keys.get(node.inputs[0], ()) if len(node.inputs) == 1 else ()

    def _followed(self, node: Node, applied: DataFrame) -> tuple[str, ...]:
        """The key that a node takes over: column by column, where it keeps no state."""
        key = self._inherited(node)
        return followed(applied, key) if key and not node.stateful else key

    def varies(self, node: Node) -> bool:
        """Whether a node gives other rows each time: by its own word, by Spark's once it has been built, or through a function."""
        repeatable = not isinstance(node.component, Source | Transform) or node.component.deterministic
        return not repeatable or self.nondeterministic.get(node.name, False)

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
        raise type(error)([replace(found, span=found.span or node.place("sql") or node.span) for found in error.diagnostics]) from error


def _refusal(node: Node, inputs: Iterable[DataFrame], applied: DataFrame) -> Refusal | None:
    """What Spark's plan of a node says against it."""
    if node.stateful:
        return inexact(applied)
    changes = any(op_of(frame.columns) for frame in inputs) and not names_op(str(getattr(node.component, "sql", "")))
    return per_epoch(applied, {}) or (multiplied(applied) if changes else None)


def _require(refusal: Refusal | None, node: Node) -> None:
    """A step that is no root runs on the rows of one epoch, and may need no others."""
    if refusal is None:
        return
    at = refusal.origin.within(str(getattr(node.component, "sql", ""))) if refusal.origin else None
    raise RunError(Diagnostic("MS030", f"`{node.name}`: {refusal.reason}", text_place(node, "sql", *at) if at else node.place("sql")))


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
