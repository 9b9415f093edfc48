"""Row counts per node, derived from what an epoch's sinks and nodes report. No extra Spark job runs for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from millstream.engine.lowering.nodes import Lowering
from millstream.observe.facts import Recorder
from millstream.plan.components import CountsLookups
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import TransformNode


def rejected_rows(plan: QueryPlan, rows: Mapping[str, int]) -> dict[str, int]:
    """Node → its rejects, where a dead-letter sink that counts them takes rejects from this node alone."""
    found = {}
    for sink in plan.sinks:
        nodes = plan.nodes_rejecting_to(sink)
        if len(nodes) == 1 and sink.name in rows and not plan.late_rows_of(sink):
            found[nodes[0].name] = rows[sink.name]
    return found


def passed_rows(plan: QueryPlan, rows: Mapping[str, int], collapsed: Collection[str]) -> dict[str, int]:
    """Transform → the rows that it returned, where a plain sink received all of them."""
    found = {}
    for sink in plan.sinks:
        special = plan.nodes_rejecting_to(sink) or plan.late_rows_of(sink) or sink.isolates or sink.name in collapsed
        if sink.inputs and not special and sink.name in rows and isinstance(plan.node(sink.inputs[0]), TransformNode):
            found[sink.inputs[0]] = rows[sink.name]
    return found


def record_lookups(plan: QueryPlan, lowering: Lowering, recorder: Recorder) -> None:
    """Record hits and misses that nodes have counted themselves."""
    for node in plan.nodes:
        run = lowering.transform(node) if isinstance(node, TransformNode) else None
        counts = run.take_counts() if isinstance(run, CountsLookups) else None
        if counts is not None:
            recorder.add(node.name, "transform", hits=counts[0], misses=counts[1])
