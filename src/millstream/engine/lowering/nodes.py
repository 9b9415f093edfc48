"""Lowering: the plan becomes DataFrames, once for the streaming plan above a query's root, and once per epoch for the nodes below it.

Rejects above a root leave the streaming plan as separate rows: the root's frame is a union of its rows and of the rejects, distinguished by
the column `REJECT`. Below the root every node that isolates rejects has that column in its own frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from millstream.checkpoint.evolution import cost_of_reset
from millstream.checkpoint.layout import Checkpoint
from millstream.engine.incremental.analysis import Analysis
from millstream.engine.incremental.arrivals import Feed, arrivals
from millstream.engine.incremental.growth import Growth, growth_of
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.incremental.relations import Refused
from millstream.engine.lowering.counters import Counters
from millstream.engine.lowering.event_time import watermark_id, with_event_time, with_watermark
from millstream.engine.lowering.runs import NodeRuns
from millstream.engine.lowering.side_outputs import observed
from millstream.engine.lowering.traces import Taps, with_traces
from millstream.errors import Diagnostic, NoKeyError, PlanMismatchError, RunError
from millstream.plan.changelog import op_of
from millstream.plan.components import (
    REJECT,
    Component,
    FinishesEpochs,
    HasSideOutputs,
    KeepsLastPerKey,
    NamesKey,
    NodeContext,
    ReadsSideOutput,
    SinkRun,
    SourceRun,
    TransformRun,
)
from millstream.plan.cutting import QueryPlan, ttl_of
from millstream.plan.declarations import UserFunction
from millstream.plan.document import node_document
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, StreamNode, TransformNode
from millstream.plan.side_outputs import SideOutputNode
from millstream.plan.tracing import TRACED
from millstream.sql.analysed import plans
from millstream.sql.analysed.changelogs import find_multiplying_step, key_in_result
from millstream.sql.analysed.gate import Refusal, inexact, per_epoch
from millstream.sql.catalyst.bridge import WATERMARK
from millstream.sql.check.changelog import names_op
from millstream.sql.check.query import reads_clock
from millstream.sql.check.whole_rows import sees_whole_rows
from millstream.store.protocol import Namespace, Store
from millstream.worker.plugin_tasks import Metrics, NoMetrics

_NO_TIME = "1970-01-01 00:00:00.000000"
"""The clock of an epoch that does not run."""
REJECT_TYPE = "struct<node: string, raw: string, error: string>"


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Lowering:
    """Turns nodes into frames."""

    spark: SparkSession
    checkpoint: Checkpoint
    directory: Path
    schemas: Mapping[str, pa.Schema | None] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Values of secrets, which must not appear in any text of a run."""
    functions: tuple[UserFunction, ...] = ()
    """The user's functions that SQL can call."""
    runs: NodeRuns = field(default_factory=NodeRuns)
    """The run objects of the nodes."""
    store: Store | None = None
    """Named values of the pipeline."""
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Node → its primary key, for the nodes built so far: declared, found in the data, or inherited from the input."""

    whole_rows: set[str] = field(default_factory=set)
    """Nodes whose changes add and remove whole rows, for the nodes built so far: results without a key, and what reads only these."""
    statements: dict[str, list[str]] = field(default_factory=dict)
    """Node → the SQL that it last passed to Spark, so that a failure can be attributed to its node."""
    dry: bool = False
    """Whether the plan is only analysed."""
    real_time: bool = False
    """Whether the pipeline runs in real-time mode."""
    examined: dict[str, Component] = field(default_factory=dict)
    """Node → the component whose plan was analysed. A half-done epoch of an earlier plan may have another component."""
    nondeterministic: dict[str, bool] = field(default_factory=dict)
    """Node → whether Spark calls its plan non-deterministic."""
    taps: Taps | None = None
    """What notes that traced records pass a node, if somebody wants to know."""
    traced: dict[str, bool] = field(default_factory=dict)
    """Node → whether its rows have a trace context, for the nodes built so far."""
    side_outputs: tuple[SideOutputNode, ...] = ()
    """What sees the rows of sources."""
    counters: Counters | None = None
    """The counters of plugins; None where no run is going on."""
    is_stopping: Callable[[], bool] = _never
    """Whether the run has been asked to stop."""

    def build_stream(self, plan: QueryPlan) -> Stream:
        """The streaming frame of a query, from which Spark makes epochs."""
        frames: dict[str, DataFrame] = {}
        rejects: list[DataFrame] = []
        clocks: dict[str, str] = {}
        maintained = {node.name for node in plan.maintained}
        for node in plan.streamed:
            if node.name in maintained:
                continue
            inputs = {name: visible(frames[name], plan.node(name), node) for name in node.inputs}
            if node.stateful:  # many records become one, and the state does not depend on what is traced
                inputs = {name: self.untraced(rows) for name, rows in inputs.items()}
            event_times = {name: plan.event_time_of(name) for name in node.inputs}
            frame = self.lower(node, self._with_aliases(node, inputs), self.spark, event_times=event_times, watched=node in plan.clocks)
            frames[node.name] = frame
            if node.isolates and node is not plan.root:
                frames[node.name] = accepted_rows(frame)
                if node.name in plan.owned:
                    rejects.append(rejected_rows(frame, node))
            if node in plan.clocks:
                frames[node.name] = with_watermark(frames[node.name], node, plan.delay_ms(node.name), plan.held)
                clocks[watermark_id(frames[node.name])] = node.name
        if maintained:
            return self._maintained_stream(plan, frames, rejects, clocks)
        root = frames[plan.stream_end.name]
        return Stream(_union_with_rejects(root, plan.root, rejects) if rejects else root, clocks, frames)

    def _maintained_stream(
        self, plan: QueryPlan, frames: Mapping[str, DataFrame], rejects: list[DataFrame], clocks: Mapping[str, str]
    ) -> Stream:
        """The rows that arrive at the maintained nodes, and what keeps the root's result up to date."""
        arriving = {name: self.untraced(visible(frames[name], plan.node(name))) for name in plan.feeding}
        maintenance, rows = self._prepared(plan, arriving)
        self.keys[plan.root.name] = maintenance.key or ()
        if maintenance.key is None:
            self.whole_rows.add(plan.root.name)
        stream = arrivals(rows)
        return Stream(_union_with_rejects(stream, None, rejects) if rejects else stream, clocks, frames, maintenance)

    def _feeds(self, plan: QueryPlan, arriving: Mapping[str, DataFrame]) -> dict[str, Feed]:
        """The inputs of the maintained nodes. One that is read with and without a `ttl` is two inputs with the same rows."""
        feeds = {}
        for name, frame in arriving.items():
            key = self._table_key(plan.node(name), frame)
            for ttl in plan.ttls_of(name):
                feeds[_feed_name(name, ttl)] = Feed(frame.schema, key, ttl_ms=ttl.milliseconds if ttl else None, arrives_as=name)
        return feeds

    def _prepared(self, plan: QueryPlan, arriving: Mapping[str, DataFrame]) -> tuple[Maintenance, Mapping[str, DataFrame]]:
        """What keeps the root's result up to date, compiled; and the rows that it reads."""
        partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        storage, root, lease = self.checkpoint.incremental(plan.name), plan.root, self.checkpoint.require_lease
        native = self._native_texts(plan)
        try:
            analysis = Analysis(self.spark, self._feeds(plan, arriving), partial(self._relate, plan), root.name)
            rows = analysis.stream_parts(native, self._with_inputs_of(plan, arriving))
            cost = partial(cost_of_reset, plan, self.checkpoint)
            kept = Maintenance(plan.name, analysis, storage, partitions, final=plan.final, require_lease=lease, cost_of_reset=cost)
            kept.prepare(root.options.primary_key, [sink.options.primary_key for sink in plan.sinks if root.name in sink.inputs])
        except Refused as refused:
            texts = {str(getattr(node.component, "sql", "")): node for node in plan.maintained}
            found = refused.origin
            _require(Refusal(refused.reason, found), texts.get(found.text, root) if found else root)
            raise
        return kept, rows

    @staticmethod
    def _native_texts(plan: QueryPlan) -> dict[str, str]:
        """The texts of which Spark's stream may compute parts, with their nodes. A text that another node keeps up to date as a whole is
        none of them.
        """
        texts = {node.name: str(getattr(node.component, "sql", "")) for node in plan.maintained}
        whole = {texts[node.name] for node in plan.maintained if not node.component.native_parts}
        return {text: name for name, text in texts.items() if text not in whole}

    def _with_inputs_of(self, plan: QueryPlan, arriving: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Give the rows the aliases by which the late rows of windows are found."""
        found = dict(arriving)
        for node in plan.maintained:
            for name in node.inputs if node.component.native_parts else ():
                if name in found:
                    found[name] = found[name].alias(input_alias(node.name, name))
        return found

    def preview_operators(self, plan: QueryPlan, frames: Mapping[str, DataFrame]) -> tuple[list[Growth], tuple[str, ...] | None]:
        """The incremental operators of a query with what they cost and keep, and the key of its result, from frames without rows."""
        arriving = {name: _with_time(visible(frames[name], plan.node(name)), plan, name) for name in plan.feeding}
        with closing(self._prepared(plan, arriving)[0]) as maintenance:
            self.keys[plan.name] = maintenance.key or ()
            self._require_takers(plan)
            for sink in plan.sinks:
                if plan.root.name in sink.inputs and not plan.final:
                    self._require_own_key(plan.root, sink)
                    self._require_taker(plan.root, sink)
            return growth_of(maintenance.view.compilation), maintenance.key

    def _require_takers(self, plan: QueryPlan) -> None:
        """Where no sink can take the changes of a result and the inputs end, the result can be returned once instead."""
        sinks = [sink for sink in plan.sinks if sink.inputs] if not plan.below else []  # a node below may handle `_op`
        takers = [sink for sink in sinks if sink.component.updates_help or self._takes_updates(sink)]
        once = plan.bounded and isinstance(plan.root, TransformNode) and plan.root.component.returned_once() is not None
        if once and sinks and not takers:
            message = f"sink `{sinks[0].name}` cannot apply the changes of `{plan.root.name}`, which have no key"
            raise NoKeyError(Diagnostic("MS118", message, sinks[0].span, node=plan.root.name))

    def _require_same_again(self, root: AnyNode, node: TransformNode) -> None:
        """A whole row is removed by its values, so they must be the same as when it was added."""
        if node.name in self.whole_rows and (self.varies(node) or any(map(reads_clock, _texts_of(node_document(node))))):
            message = f"`{node.name}`: a row may be removed with other values than it was added with, since the changes of `{root.name}`"
            help_ = f"add `primary_key` to `{root.name}` if columns identify its rows, or compute the values above it"
            raise RunError(Diagnostic("MS030", f"{message} have no key", node.span, help=help_, node=node.name))

    def _require_taker(self, root: AnyNode, sink: SinkNode) -> None:
        """A sink that would apply changes otherwise than by their key."""
        key = sink.options.primary_key or self._input_key(sink)
        if sink.component.updates_help and not self._takes_updates(sink):
            has = f"have the key `{', '.join(key)}`" if key else "have no key"
            message = f"the changes of `{root.name}` {has}, and sink `{sink.name}` applies them otherwise: rows that are gone would stay"
            raise RunError(Diagnostic("MS178", message, sink.span, help=sink.component.updates_help, node=sink.name))

    def _require_table_keys(self, plan: QueryPlan, frames: Mapping[str, DataFrame]) -> None:
        """A dynamic table applies changes by its own key."""
        for node in plan.filling:
            wanted, own = (str(getattr(node.component, "key", "")),), self.keys.get(node.name, ())
            if node.name in frames and op_of(frames[node.name].columns) and wanted != own:
                has = f"have the key `{', '.join(own)}`" if own else "have no key"
                message = f"table `{node.name}` has the key `{wanted[0]}`, and the changes of `{plan.root.name}` {has}"
                help_ = f"add `primary_key: {wanted[0]}` to `{plan.root.name}` if no two of its rows share it"
                raise RunError(Diagnostic("MS178", message, node.span, help=help_, node=node.name))

    def _takes_updates(self, sink: SinkNode) -> bool:
        return sink.component.takes_updates(sink.options.primary_key or self._input_key(sink))

    def _require_own_key(self, root: AnyNode, sink: SinkNode) -> None:
        """A sink must apply changes by the key that they have: with another key, rows whose key value changes would stay behind."""
        wanted, own = sink.options.primary_key, self.keys.get(sink.inputs[0], ())
        if wanted and set(wanted) != set(own):
            has = f"its changes have the key `{', '.join(own)}`" if own else "its rows have no key that follows from the query"
            message = f"sink `{sink.name}` has the primary key `{', '.join(wanted)}`; `{root.name}` is kept up to date, and {has}"
            declare = f"add `primary_key: [{', '.join(wanted)}]` to `{root.name}` if no two of its rows share it"
            help_ = f"use that key, or {declare}" if own else declare
            raise RunError(Diagnostic("MS178", message, sink.place("primary_key"), help=help_, node=sink.name))

    def _table_key(self, node: AnyNode, frame: DataFrame) -> tuple[str, ...]:
        """The key of a node, which a changelog needs to be a table."""
        key = self.keys.get(node.name, ())
        if not key and op_of(frame.columns):
            message = f"`{node.name}` is a changelog without a primary key, so its changes cannot be applied to rows"
            raise RunError(Diagnostic("MS177", message, node.span, help=f"add `primary_key: COLUMN` to `{node.name}`", node=node.name))
        return key

    def _relate(self, plan: QueryPlan, tables: Mapping[str, DataFrame]) -> DataFrame:
        """The root's result as a function of whole tables."""
        frames = dict(tables)
        for node in plan.maintained:
            if node.isolates:
                message = f"`{node.name}`: `on_error` is not supported in a query that is kept up to date"
                raise RunError(Diagnostic("MS030", message, node.place("on_error"), help=f"set it on a node above `{node.name}`"))
            event_times = {name: plan.event_time_of(name) for name in node.inputs}
            run, context = self.transform(node), replace(self.context(node, event_times=event_times), relational=True, isolate=False)
            with _report_at(node):
                inputs = {name: frames.get(_feed_name(name, ttl_of(node))) for name in node.inputs}
                applied = run.apply({name: frames[name] if found is None else found for name, found in inputs.items()}, context)
                frames[node.name] = with_event_time(applied, node, watched=True)
        return frames[plan.root.name]

    def examine(self, plan: QueryPlan, stream: Stream) -> None:
        """Build the per-epoch nodes once without rows. Steps that must not run per epoch, and changelogs that a sink cannot apply, are
        refused before the first epoch is planned.
        """
        stream_end = plan.stream_end
        empty = self.spark.createDataFrame([], stream.frame.schema)
        with _report_at(stream_end):
            kept = stream.maintenance
            root = kept.view.empty_result(self.spark) if kept else finish(stream_end, empty, self, _NO_TIME)
        frames = {stream_end.name: accepted_rows(root) if REJECT in root.columns else root}
        for node in plan.below:
            if node.name not in frames and all(name in frames for name in node.inputs):
                inputs = {name: visible(frames[name], plan.node(name), node) for name in node.inputs}
                frame = self.lower(node, inputs, self.spark, _NO_TIME)
                frames[node.name] = accepted_rows(frame) if REJECT in frame.columns else frame
        if kept:
            for node in plan.below:
                self._require_same_again(plan.root, node)
            self._require_takers(plan)
            self._require_table_keys(plan, frames)
        for sink in plan.sinks:
            if kept and sink.inputs and sink.inputs[0] in frames and op_of(frames[sink.inputs[0]].columns):
                self._require_own_key(plan.root, sink)
                self._require_taker(plan.root, sink)
            run = self.sink(sink)
            if sink.inputs and sink.inputs[0] in frames and isinstance(run, KeepsLastPerKey):
                with _report_at(sink):
                    run.collapse_key(frames[sink.inputs[0]].columns)

    def source(self, node: SourceNode) -> SourceRun:
        return self.runs.source(node, self.context)

    def transform(self, node: TransformNode) -> TransformRun:
        return self.runs.transform(node, self.context)

    def sink(self, node: SinkNode) -> SinkRun[Any]:
        return self.runs.sink(node, self.context)

    def lower(
        self,
        node: StreamNode,
        frames: Mapping[str, DataFrame],
        spark: SparkSession,
        clock: str = "",
        event_times: Mapping[str, str] | None = None,
        watched: bool = False,
    ) -> DataFrame:
        if isinstance(node, SourceNode):
            watching = [(each, self.metrics(each.name)) for each in self.side_outputs]
            read = observed(self.source(node).read(spark), node, watching, self.directory, self.hidden)
            self._set_key(node, self.source_key(node), read)
            self.traced[node.name] = node.options.telemetry.trace is not None
            return with_event_time(with_traces(read, node, self.checkpoint.pipeline, self.taps), node, clock, watched)
        self.statements[node.name] = []
        if any(self.traced.values()) and _sees_whole_rows(node):
            frames = {name: self.untraced(frame) for name, frame in frames.items()}
        run, context = self.transform(node), self.context(node, clock, event_times)
        if context.whole_rows:
            self.whole_rows.add(node.name)
        known = self.examined.get(node.name) is node.component
        examining = not node.stateful and not known
        with _report_at(node):
            inputs = {name: frames[name].alias(input_alias(node.name, name)) if examining else frames[name] for name in node.inputs}
            applied = run.apply(inputs, context)
            if not known:  # once per run: the answers do not depend on the epoch
                _require(_refusal(node, inputs.values(), applied), node)
                plain = run.apply(inputs, replace(context, isolate=False)) if node.isolates else applied
                self.nondeterministic[node.name] = not plans.is_deterministic(plain)
                self.examined[node.name] = node.component
                self._set_key(node, node.primary_key or self._inherited_key(node, plain), applied)
        return with_event_time(self.with_tap(node, applied), node, clock, watched and not node.stateful)

    def with_tap(self, node: AnyNode, frame: DataFrame) -> DataFrame:
        """The rows of a node that reads others, with a tap if its rows have a trace context."""
        sampled = [self.taps.lengths[name] for name in node.inputs if self.traced.get(name)] if self.taps else []
        if not sampled:
            return frame
        if node.name not in self.traced:  # once per run: it costs a question to Spark
            self.traced[node.name] = TRACED in frame.columns
        return self.taps.observe(frame, node.name, max(sampled)) if self.taps and self.traced[node.name] else frame

    def _with_aliases(self, node: AnyNode, frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Give the inputs of a stateful node an alias. Its own plan ends there, and the rows of an epoch are found by that alias."""
        if not node.stateful:
            return frames
        return {name: frames[name].alias(input_alias(node.name, name)) for name in node.inputs}

    def for_sink(self, sink: SinkNode, above: AnyNode, frame: DataFrame) -> DataFrame:
        """The rows of a sink's input as the sink receives them: the context of traced records only if the sink passes it on."""
        if above.hides_rows:  # else what passes the input reaches the sink: see `Records`
            frame = self.with_tap(sink, frame)
        return frame if sink.component.carries_traces else self.untraced(frame)

    def untraced(self, frame: DataFrame) -> DataFrame:
        """The rows without the context of traced records."""
        return frame.drop(TRACED) if any(self.traced.values()) else frame

    def context(self, node: AnyNode, clock: str = "", event_times: Mapping[str, str] | None = None) -> NodeContext:
        return NodeContext(
            node.name,
            self.directory,
            self.checkpoint.node(node.name),
            isolate=node.isolates,
            schema=self.schemas.get(node.name),
            clock=clock,
            aggregates=self.aggregates,
            whole_rows=bool(node.inputs) and self.whole_rows.issuperset(node.inputs),
            event_times=event_times or {},
            dry=self.dry,
            traced=node.options.telemetry.trace is not None,
            real_time=self.real_time,
            pipeline=self.checkpoint.pipeline,
            find_key=lambda: node.options.primary_key or self._input_key(node),
            record_sql=lambda text: self.statements.setdefault(node.name, []).append(text),
            find_table=lambda name: self.transform(self.runs.tables[name]),
            hidden=self.hidden,
            store=Namespace(self.store, node.name) if self.store else None,
            metrics=self.metrics(node.name),
            is_stopping=self.is_stopping,
        )

    def is_observed(self, node: AnyNode) -> bool:
        """Whether a side output sees the rows of a node: to compute them twice would show them twice."""
        return isinstance(node, SourceNode) and any(each.sees(node.name) for each in self.side_outputs)

    def metrics(self, node: str) -> Metrics:
        return self.counters.of(node) if self.counters else NoMetrics()

    def source_key(self, node: SourceNode) -> tuple[str, ...]:
        """The key of a source: declared, or known to its system."""
        source = self.source(node)
        return node.primary_key or (source.key_columns() if isinstance(source, NamesKey) else ())

    def _set_key(self, node: AnyNode, key: tuple[str, ...], frame: DataFrame) -> None:
        self.keys[node.name] = key if set(key) <= set(frame.columns) else ()

    def _input_key(self, node: AnyNode) -> tuple[str, ...]:
        """The key of its only input."""
        return self.keys.get(node.inputs[0], ()) if len(node.inputs) == 1 else ()

    def _inherited_key(self, node: AnyNode, applied: DataFrame) -> tuple[str, ...]:
        """The key that a stateless node inherits, followed column by column."""
        key = self._input_key(node)
        return key_in_result(applied, key) if key and not node.stateful else key

    def varies(self, node: AnyNode) -> bool:
        """Whether a node's rows vary: it says so, Spark's plan says so, or it calls a function that varies."""
        limited = isinstance(node, TransformNode) and node.component.limited and node.isolates
        repeatable = isinstance(node, SinkNode) or (node.component.deterministic and not limited)
        return not repeatable or self.nondeterministic.get(node.name, False)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Functions whose values vary."""
        return tuple(used.name for used in self.functions if not used.resolve(self.directory).deterministic)

    @cached_property
    def aggregates(self) -> tuple[str, ...]:
        return tuple(used.name for used in self.functions if used.resolve(self.directory).aggregate)


@contextmanager
def _report_at(node: AnyNode) -> Iterator[None]:
    """Report a node's problem at that node, and not at the sink that reads it."""
    try:
        yield
    except RunError as error:
        raise type(error)([replace(found, span=found.span or node.place("sql") or node.span) for found in error.diagnostics]) from error


def _refusal(node: AnyNode, inputs: Iterable[DataFrame], applied: DataFrame) -> Refusal | None:
    """The reason why Spark's plan of a node is refused, if any."""
    if node.stateful:
        return inexact(applied)
    changes = any(op_of(frame.columns) for frame in inputs) and not names_op(str(getattr(node.component, "sql", "")))
    return per_epoch(applied, {}) or (find_multiplying_step(applied) if changes else None)


def _require(refusal: Refusal | None, node: AnyNode) -> None:
    """A step that is not a root sees the rows of one epoch; refuse it if it needs others."""
    if refusal is None:
        return
    at = refusal.origin.within(str(getattr(node.component, "sql", ""))) if refusal.origin else None
    place = node.text_place("sql", line=at[0], column=at[1]) if at else node.place("sql")
    raise PlanMismatchError(Diagnostic("MS030", f"`{node.name}`: {refusal.reason}", place, node=node.name))


@dataclass(frozen=True, slots=True)
class Stream:
    """A query's streaming plan."""

    frame: DataFrame
    clocks: Mapping[str, str]
    """Spark's identifier of a watermark → the node that declares it"""
    frames: Mapping[str, DataFrame]
    """Node → the part of the plan that computes it, for nodes that Spark's stream computes"""
    maintenance: Maintenance | None = None
    """What keeps the root's result up to date, if it is incremental."""


def _with_time(frame: DataFrame, plan: QueryPlan, name: str) -> DataFrame:
    """A frame without rows, whose event time is marked as in a run: Spark marks it in streams only."""
    column = plan.event_time_of(name) if plan.clocks else ""
    marked = [
        StructField(each.name, each.dataType, each.nullable, {WATERMARK: 0}) if each.name == column else each for each in frame.schema
    ]
    return frame.sparkSession.createDataFrame([], StructType(marked)) if column else frame


def _texts_of(value: Any) -> Iterator[str]:
    """All texts in an option."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_of(each)


def _sees_whole_rows(node: AnyNode) -> bool:
    """Whether a node's texts might see the context of traced records. What is traced must not change what is computed."""
    document = {name: value for name, value in node_document(node).items() if name != "description"}
    return any(map(sees_whole_rows, _texts_of(document)))


def _feed_name(name: str, ttl: str | None) -> str:
    return f"{name} of the last {ttl}" if ttl else name


def input_alias(node: str, name: str) -> str:
    return f"_millstream:{node}:{name}"


def finish(node: StreamNode, frame: DataFrame, lowering: Lowering, clock: str = "") -> DataFrame:
    """Apply a node's per-epoch step to its results; rejects bypass it."""
    if not isinstance(node, TransformNode) or not node.has_tail:
        return frame
    run, context = lowering.transform(node), lowering.context(node, clock)
    assert isinstance(run, FinishesEpochs)
    if REJECT not in frame.columns:
        return run.finish(frame, context)
    done = run.finish(accepted_rows(frame), context).withColumn(REJECT, F.lit(None).cast(frame.schema[REJECT].dataType))
    return done.unionByName(frame.where(F.col(REJECT).isNotNull()).select(REJECT), allowMissingColumns=True)


def visible(frame: DataFrame, node: AnyNode, reader: AnyNode | None = None) -> DataFrame:
    """The rows of a node that a reader sees: without its side outputs, unless the reader selects them."""
    column = node.component.side_column if isinstance(node.component, HasSideOutputs) else ""
    if not column or column not in frame.columns or (reader is not None and isinstance(reader.component, ReadsSideOutput)):
        return frame
    return frame.where(F.col(column).isNull()).drop(column)


def accepted_rows(frame: DataFrame) -> DataFrame:
    return frame.where(F.col(REJECT).isNull()).drop(REJECT)


def rejected_rows(frame: DataFrame, node: AnyNode) -> DataFrame:
    """The rejects of one node, as one column with the node's name."""
    return frame.where(F.col(REJECT).isNotNull()).select(named_reject(node).cast(REJECT_TYPE).alias(REJECT))


def named_reject(node: AnyNode) -> Column:
    """The reject of a row, with the name of its node."""
    return F.struct(F.lit(node.name).alias("node"), F.col(f"{REJECT}.raw"), F.col(f"{REJECT}.error"))


def _union_with_rejects(root: DataFrame, node: AnyNode | None, rejects: list[DataFrame]) -> DataFrame:
    """The root's rows, its own rejects if `node` is the root, and the rejects from above it."""
    own = F.when(F.col(REJECT).isNotNull(), named_reject(node)) if node is not None and node.isolates else F.lit(None)
    rows = root.withColumn(REJECT, own.cast(REJECT_TYPE))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), rejects, rows)
