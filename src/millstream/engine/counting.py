"""What Spark's progress says about an epoch, put down for the nodes of the plan. No job is run for what is counted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.engine.checkpoint import QueryCheckpoint
from millstream.engine.lowering import Lowering
from millstream.observe.facts import Recorder, StateFacts
from millstream.plan.components import Progress, Source
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node

Facts = Mapping[str, Any]


def count(facts: Facts, scans: int, plan: QueryPlan, recorder: Recorder, lowering: Lowering, query: QueryCheckpoint) -> None:
    """Rows read, rows that wait, speed and state of one epoch, whose root was read so many times."""
    for index, (node, source) in enumerate(zip(plan.sources, facts["sources"], strict=False)):
        assert isinstance(node.component, Source)
        rows, reads = int(source["numInputRows"]), scans * plan.scans(node)
        log = query.storage.child(f"sources/{index}")
        seen = None if rows % reads else rows // reads
        progress = Progress(source["startOffset"], source["endOffset"], seen, _pushes(plan), log)
        recorder.read(plan.name, {node.name: node.component.rows_read(progress, lowering.context(node))})
        waiting = _rows_waiting(node, source)
        if waiting is not None:
            recorder.waits(node.name, waiting)
    recorder.speed(plan.name, facts.get("processedRowsPerSecond") or 0.0)
    _remember(facts.get("stateOperators") or [], plan, recorder)


def _pushes(plan: QueryPlan) -> bool:
    """Whether Spark plans the scan together with more than the source itself."""
    return len(plan.streamed) > 1 or bool(plan.root.options.event_time)


def _remember(operators: Sequence[Facts], plan: QueryPlan, recorder: Recorder) -> None:
    """State sizes. Several operators belong to one node, unless there are as many nodes as operators."""
    nodes = [node.name for node in plan.above if node.stateful]
    if not nodes or not operators:
        return
    apart = len(nodes) == len(operators)
    shares = {name: [part] for name, part in zip(reversed(nodes), operators, strict=True)} if apart else {nodes[-1]: operators}
    for name, parts in shares.items():
        disk = sum(part.get("customMetrics", {}).get("rocksdbSstFileSize", 0) for part in parts)
        total = StateFacts(sum(part["numRowsTotal"] for part in parts), sum(part["memoryUsedBytes"] for part in parts), disk)
        recorder.remembers(name, total)


def _rows_waiting(node: Node, progress: Facts) -> int | None:
    """What the source still holds, by the last offset that Spark has seen there."""
    assert isinstance(node.component, Source)
    end, latest = progress.get("endOffset"), progress.get("latestOffset")
    return node.component.waiting(end, latest) if end is not None and latest is not None else None
