"""Previews a run: Spark's analysis of every node, the queries, and the changes since the last run.

Every transform is built on empty frames with its inputs' schemas, so that Spark's analyzer checks it and no row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.checkpoint.evolution import Change, changes
from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import open_storage
from millstream.engine.decisions import decide, find_misjudged, recall
from millstream.engine.sessions import open_session
from millstream.errors import Diagnostic, MillstreamError, NoKeyError, PlanMismatchError, SpecError
from millstream.jvm.quiet import hush
from millstream.plan.components import REJECT
from millstream.plan.cutting import QueryPlan, cut, event_time_of
from millstream.plan.lookup_tables import is_table, table_nodes
from millstream.plan.nodes import SinkNode, SourceNode, StreamNode, TransformNode
from millstream.plan.run_options import checkpoint_of
from millstream.plan.schemas import propagate
from millstream.plan.topology import Topology
from millstream.rules import check
from millstream.secrets import Redactor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.engine.lowering.nodes import Lowering


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query and its progress."""

    plan: QueryPlan
    committed: int
    changes: tuple[Change, ...]
    operators: tuple[OperatorView, ...] = ()
    """The operators that keep the root's result up to date, inputs first; empty if it is not incremental or was not analysed."""
    key: tuple[str, ...] | None = None
    """The columns that identify a row of that result."""


@dataclass(frozen=True, slots=True)
class OperatorView:
    """One incremental operator."""

    kind: str
    inputs: str
    key: str
    keeps: tuple[str, ...]
    cost: str
    """What is computed in an epoch."""
    row_bytes: tuple[int, ...]
    """The estimated size of a row of each store."""
    bounded_by: str
    """What keeps its stores from growing without bound; empty if nothing does."""


@dataclass(frozen=True, slots=True)
class PlanView:
    """The whole plan."""

    topology: Topology
    queries: tuple[QueryView, ...]
    schemas: dict[str, pa.Schema | None]
    findings: tuple[Diagnostic, ...]


def view(topology: Topology, analyse: bool = True) -> PlanView:
    """The plan as a run would execute it. Without `analyse` no JVM is started."""
    if analyse:
        with open_session(topology, cut(topology), logs=False) as session:
            checkpoint = Checkpoint(open_storage(checkpoint_of(topology), session.spark), topology.name)
            return _analysed_view(recall(topology, checkpoint), checkpoint, session.spark)
    checkpoint = Checkpoint(open_storage(checkpoint_of(topology)), topology.name)
    topology = recall(topology, checkpoint)
    return PlanView(topology, _queries(topology, cut(topology), checkpoint), propagate(topology), check(topology))


def _analysed_view(topology: Topology, checkpoint: Checkpoint, spark: object) -> PlanView:
    queries = cut(topology)
    analysis = _analyse(topology, queries, checkpoint, spark)
    error = PlanMismatchError(analysis.mismatches) if analysis.mismatches else analysis.without_key
    misjudged = find_misjudged(topology, error) if error is not None else ()
    if misjudged:
        return _analysed_view(decide(topology, misjudged), checkpoint, spark)
    return PlanView(topology, _queries(topology, queries, checkpoint, analysis), analysis.schemas, tuple(analysis.findings))


@dataclass
class _Analysis:
    """What Spark says about a plan."""

    schemas: dict[str, pa.Schema | None] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    operators: dict[str, tuple[OperatorView, ...]] = field(default_factory=dict)
    """Query → its incremental operators"""
    keys: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    mismatches: list[Diagnostic] = field(default_factory=list)
    """The findings of nodes whose text misled."""
    without_key: NoKeyError | None = None
    """A result whose changes its sinks cannot apply."""


def _queries(
    topology: Topology, queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, analysis: _Analysis | None = None
) -> tuple[QueryView, ...]:
    analysis = analysis or _Analysis()
    return tuple(
        QueryView(
            plan,
            checkpoint.query(plan.name).last_committed(),
            tuple(changes(topology, plan, checkpoint)),
            analysis.operators.get(plan.name, ()),
            analysis.keys.get(plan.name),
        )
        for plan in queries
    )


def _analyse(topology: Topology, queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, spark: object) -> _Analysis:
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from millstream.engine.failures import Translator
    from millstream.engine.lowering.event_time import with_event_time
    from millstream.engine.lowering.functions import register
    from millstream.engine.lowering.nodes import Lowering, accepted_rows, finish, visible
    from millstream.engine.lowering.runs import NodeRuns
    from millstream.sql.analysed.isolation import without_rejects

    assert isinstance(spark, SparkSession)
    hush()
    lowering = Lowering(
        spark, checkpoint, topology.directory, runs=NodeRuns(table_nodes(topology.nodes)), functions=topology.functions, dry=True
    )
    register(spark, topology.functions, topology.directory)
    frames: dict[str, DataFrame] = {}
    analysis = _Analysis()
    schemas, findings = analysis.schemas, analysis.findings

    def analyse_node(node: StreamNode) -> None:
        if isinstance(node, SourceNode):
            schema = node.component.output() or lowering.source(node).discover(spark)
            empty = spark.createDataFrame([], from_arrow_schema(schema))
            with suppress(MillstreamError):  # the system that knows the key does not answer
                lowering.keys[node.name] = lowering.source_key(node)
            frame = with_event_time(without_rejects(empty) if node.isolates else empty, node)
        else:
            inputs = {name: visible(frames[name], topology.node(name), node) for name in node.inputs}
            frame = lowering.lower(node, inputs, spark, event_times={name: event_time_of(topology.node, name) for name in node.inputs})
            frame = finish(node, frame, lowering)
        frames[node.name] = accepted_rows(frame) if REJECT in frame.columns else frame
        schemas[node.name] = to_arrow_schema(visible(frames[node.name], node).schema)

    try:
        for node in topology.ordered():
            if isinstance(node, TransformNode) and is_table(node) and not node.inputs:
                schemas[node.name] = node.component.output({})
                continue
            if isinstance(node, SinkNode) or any(name not in frames for name in node.inputs):
                continue
            try:
                analyse_node(node)
            except Exception as error:  # noqa: BLE001 — whatever Spark raises is translated
                translator = Translator([node], topology.name, Redactor([]), lowering.statements)
                failure = error if isinstance(error, MillstreamError) else translator.translate(error, node.name)
                findings += [found.at(node.span, node.name) for found in failure.diagnostics]
                analysis.mismatches += failure.diagnostics if isinstance(failure, PlanMismatchError) else ()
        _analyse_incremental(queries, lowering, frames, analysis)
    finally:
        lowering.runs.close()
    findings += [finding for finding in check(topology, schemas) if finding not in findings]
    return analysis


def _analyse_incremental(queries: tuple[QueryPlan, ...], lowering: Lowering, frames: Mapping[str, DataFrame], analysis: _Analysis) -> None:
    """The operators of incremental queries, which are compiled as a run would do it."""
    from millstream.engine.failures import Translator

    for plan in queries:
        if not plan.maintained or any(name not in frames for name in plan.feeding):
            continue
        try:
            operators, key = lowering.preview_operators(plan, frames)
        except NoKeyError as error:
            analysis.without_key = error
            continue
        except Exception as error:  # noqa: BLE001 — whatever Spark raises is translated
            translator = Translator(plan.nodes, lowering.checkpoint.pipeline, Redactor([]), lowering.statements)
            failure = error if isinstance(error, MillstreamError) else translator.translate(error, plan.name)
            placed = [found.at(plan.root.span, plan.root.name) for found in failure.diagnostics]
            analysis.findings += [found for found in placed if found not in analysis.findings]
            continue
        shown = [(each.operator, each) for each in operators if each.operator.kind != "row by row"]
        analysis.operators[plan.name] = tuple(
            OperatorView(own.kind, own.inputs_read, own.key, own.stores, seen.cost, seen.row_bytes, seen.bounded_by) for own, seen in shown
        )
        analysis.keys[plan.name] = key


def require(plan: PlanView) -> None:
    errors = [finding for finding in plan.findings if finding.level == "error"]
    if errors:
        raise SpecError(errors)
