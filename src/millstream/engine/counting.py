"""What Spark's progress says about an epoch, put down for the nodes of the plan. No job is run for a count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.observe.facts import Recorder, StateFacts
from millstream.plan.components import Source
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node

Facts = Mapping[str, Any]


def count(facts: Facts, scans: int, plan: QueryPlan, recorder: Recorder) -> None:
    """Rows read, rows that wait, speed and state of one epoch, whose root was read so many times."""
    for node, source in zip(plan.sources, facts["sources"], strict=False):
        recorder.read({node.name: _rows_read(node, source, scans * plan.scans(node))})
        waiting = _rows_waiting(node, source)
        if waiting is not None:
            recorder.waits(node.name, waiting)
    recorder.speed(plan.name, facts.get("processedRowsPerSecond") or 0.0)
    _remember(facts.get("stateOperators") or [], plan, recorder)


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


def _rows_read(node: Node, progress: Facts, scans: int) -> int:
    """What the source itself says of its offsets, else what Spark counted, once per scan."""
    assert isinstance(node.component, Source)
    known = node.component.rows_between(progress["startOffset"], progress["endOffset"])
    return known if known is not None else int(progress["numInputRows"]) // scans


def _rows_waiting(node: Node, progress: Facts) -> int | None:
    """What the source still holds, by the last offset that Spark has seen there."""
    assert isinstance(node.component, Source)
    end, latest = progress.get("endOffset"), progress.get("latestOffset")
    return node.component.waiting(end, latest) if end is not None and latest is not None else None
