"""Records the facts in Spark's progress of finished epochs for the nodes of the plan. No extra Spark job runs for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from millstream.checkpoint.layout import QueryCheckpoint
from millstream.engine.lowering.nodes import Lowering
from millstream.observe.facts import NodeFacts, OperatorFacts, StateFacts
from millstream.observe.recorder import Recorder
from millstream.plan.components import Progress, ReportsLag, SourceRun
from millstream.plan.cutting import QueryPlan

Facts = Mapping[str, Any]


def finished_epochs(handle: StreamingQuery, scans: dict[int, int | None]) -> list[tuple[Facts, int | None]]:
    """Spark's progress of the epochs in `scans`, with the number of reads of their roots, None where it is not known. Found epochs are
    removed from `scans`.
    """
    waiting = set(scans)
    if not waiting:
        return []
    recent, found = handle._jsq.recentProgress(), []
    for index in range(len(recent) - 1, -1, -1):
        facts = json.loads(recent[index].json())
        number = facts["batchId"]
        if number in waiting and "addBatch" in facts["durationMs"]:
            waiting.discard(number)
            reads = scans.pop(number)
            found.append((facts, reads if reads is None else max(1, reads)))
        if not waiting or number < min(waiting):
            break
    return found[::-1]


def count_epoch(
    facts: Facts,
    scans: int | None,
    plan: QueryPlan,
    recorder: Recorder,
    lowering: Lowering,
    query: QueryCheckpoint,
    fed: Mapping[str, int] | None = None,
) -> None:
    """Record the rows read, rows waiting, speed and state size of one epoch, whose root was read `scans` times. `fed` says how often the
    stream reads the nodes that feed an incremental root.
    """
    for index, (node, source) in enumerate(zip(plan.sources, facts["sources"], strict=False)):
        run = lowering.source(node)
        rows, reads = int(source["numInputRows"]), (scans or 0) * plan.scans(node, fed)
        log = query.storage.child(f"sources/{index}")
        seen = None if not reads or rows % reads else rows // reads
        progress = Progress(source["startOffset"], source["endOffset"], seen, _pushes(plan), log)
        recorder.read(plan.name, {node.name: run.rows_read(progress)})
        waiting = _rows_waiting(run, source)
        if waiting is not None:
            recorder.set(node.name, "source", waiting=waiting)
    recorder.speed(plan.name, facts.get("processedRowsPerSecond") or 0.0)
    operators = facts.get("stateOperators") or []
    if fed:
        _record_parts(operators, plan, recorder)
    else:
        _record_state(operators, plan, recorder)


def _pushes(plan: QueryPlan) -> bool:
    """Whether Spark plans the scan together with more nodes than the source."""
    return len(plan.streamed) > 1 or bool(plan.root.options.event_time)


def _record_state(operators: Sequence[Facts], plan: QueryPlan, recorder: Recorder) -> None:
    """Record state sizes. Several operators belong to one node, unless there are as many nodes as operators."""
    nodes = [node.name for node in plan.above if node.stateful and node not in plan.maintained]
    if not nodes or not operators:
        return
    apart = len(nodes) == len(operators)
    shares = {name: [part] for name, part in zip(reversed(nodes), operators, strict=True)} if apart else {nodes[-1]: operators}
    for name, parts in shares.items():
        disk = sum(part.get("customMetrics", {}).get("rocksdbSstFileSize", 0) for part in parts)
        total = StateFacts(sum(part["numRowsTotal"] for part in parts), sum(part["memoryUsedBytes"] for part in parts), disk)
        recorder.set(name, state=total)


def _record_parts(operators: Sequence[Facts], plan: QueryPlan, recorder: Recorder) -> None:
    """Record what Spark's stream keeps of the parts of an incremental query. Nothing is recorded if other nodes above keep state, since
    Spark does not say whose it is.
    """
    kept = recorder.snapshot().nodes.get(plan.root.name, NodeFacts()).state
    if kept is None or any(node.stateful and node not in plan.maintained for node in plan.above):
        return
    native = [
        OperatorFacts(
            "native join" if "Join" in part["operatorName"] else "native windows",
            "",
            part["numRowsTotal"],
            part["memoryUsedBytes"],
            part["numRowsUpdated"] + part["numRowsRemoved"],
        )
        for part in operators
    ]
    found = [*native, *(each for each in kept.operators if not each.kind.startswith("native"))]
    state = replace(kept, rows=sum(each.rows for each in found), memory_bytes=sum(each.bytes for each in found), operators=tuple(found))
    recorder.set(plan.root.name, state=state)


def _rows_waiting(run: SourceRun, progress: Facts) -> int | None:
    """The rows that the source still holds, by the latest offset that Spark has seen."""
    end, latest = progress.get("endOffset"), progress.get("latestOffset")
    return run.rows_waiting(end, latest) if isinstance(run, ReportsLag) and end is not None and latest is not None else None
