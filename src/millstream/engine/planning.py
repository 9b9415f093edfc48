"""What a run would do, found out before it does: Spark's own view of every node, the queries, and what changed since the last run.

Every transform is built on empty frames of its inputs' schemas, so that Spark's analyzer has its say and no row is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millstream.clients.storage import open_storage
from millstream.engine.checkpoint import Checkpoint
from millstream.engine.engine import open_session
from millstream.engine.evolution import Change, changes
from millstream.engine.hush import hush
from millstream.errors import Diagnostic, MillstreamError, SpecError
from millstream.plan.components import REJECT, Source, Transform
from millstream.plan.cutting import QueryPlan, cut, event_time_of
from millstream.plan.nodes import Node
from millstream.plan.rules import check
from millstream.plan.running import checkpoint_of
from millstream.plan.schemas import propagate
from millstream.plan.tables import is_table
from millstream.plan.topology import Topology
from millstream.secrets import Redactor


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query, and how far it has come."""

    plan: QueryPlan
    committed: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """The whole plan."""

    topology: Topology
    queries: tuple[QueryView, ...]
    schemas: dict[str, pa.Schema | None]
    findings: tuple[Diagnostic, ...]


def view(topology: Topology, analyse: bool = True) -> PlanView:
    """The plan as a run would meet it. Without `analyse` no JVM is started."""
    queries = cut(topology)
    if analyse:
        with open_session(topology, queries, logs=False) as session:
            checkpoint = Checkpoint(open_storage(checkpoint_of(topology), session.spark), topology.name)
            schemas, findings = _analysed(topology, checkpoint, session.spark)
            return PlanView(topology, _queries(topology, queries, checkpoint), schemas, findings)
    checkpoint = Checkpoint(open_storage(checkpoint_of(topology)), topology.name)
    return PlanView(topology, _queries(topology, queries, checkpoint), propagate(topology), check(topology))


def _queries(topology: Topology, queries: tuple[QueryPlan, ...], checkpoint: Checkpoint) -> tuple[QueryView, ...]:
    return tuple(QueryView(plan, checkpoint.query(plan.name).committed(), tuple(changes(topology, plan, checkpoint))) for plan in queries)


def _analysed(topology: Topology, checkpoint: Checkpoint, spark: object) -> tuple[dict[str, pa.Schema | None], tuple[Diagnostic, ...]]:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from millstream.engine.clocks import stamped
    from millstream.engine.failures import translate
    from millstream.engine.functions import register
    from millstream.engine.lowering import Lowering, finished, good, visible, without_rejects

    assert isinstance(spark, SparkSession)
    hush()
    lowering = Lowering(spark, checkpoint, topology.directory, functions=topology.functions, dry=True)
    register(spark, topology.functions, topology.directory)
    frames: dict[str, DataFrame] = {}
    schemas: dict[str, pa.Schema | None] = {}
    findings: list[Diagnostic] = []

    def settle(node: Node) -> None:
        if isinstance(node.component, Source):
            schema = node.component.output() or node.component.discover(spark, lowering.context(node))
            empty = spark.createDataFrame([], from_arrow_schema(schema))
            frame = stamped(without_rejects(empty) if node.isolates else empty, node)
        else:
            inputs = {name: visible(frames[name], topology.node(name), node) for name in node.inputs}
            frame = lowering.lower(node, inputs, spark, event_times={name: event_time_of(topology.node, name) for name in node.inputs})
            frame = finished(node, frame, lowering)
        frames[node.name] = good(frame) if REJECT in frame.columns else frame
        schemas[node.name] = to_arrow_schema(visible(frames[node.name], node).schema)

    for node in topology.ordered():
        if is_table(node) and not node.inputs:
            assert isinstance(node.component, Transform)
            schemas[node.name] = node.component.output({})
            continue
        if node.kind == "sink" or any(name not in frames for name in node.inputs):
            continue
        try:
            settle(node)
        except MillstreamError as error:
            findings += error.diagnostics
        except Exception as error:  # noqa: BLE001 — whatever Spark raises is translated
            findings += translate(error, [node], node.name, Redactor([]), topology.name).diagnostics
    findings += [finding for finding in check(topology, schemas) if finding not in findings]
    return schemas, tuple(findings)


def require(plan: PlanView) -> None:
    errors = [finding for finding in plan.findings if finding.level == "error"]
    if errors:
        raise SpecError(errors)
