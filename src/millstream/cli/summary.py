"""The summary that a run prints at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.observe.facts import NodeFacts
from millstream.observe.metrics import metrics_of, plural
from millstream.plan.branches import branch_read_by

if TYPE_CHECKING:
    from millstream.observe.report import Report
    from millstream.plan.nodes import AnyNode
    from millstream.plan.topology import Topology

_MARKS = {"done": "✓", "stopped": "■", "failed": "✗"}


def summary(topology: Topology, report: Report) -> str:
    """The time, the number of epochs, and a line for each node with its counts."""
    lines = [
        f"{_MARKS.get(report.state, '·')} {report.pipeline} {report.state} in {report.seconds:.1f} s, {plural(report.epochs, 'epoch')}"
    ]
    width = max((len(node.name) for node in topology.nodes), default=0)
    for node in topology.nodes:
        phrases = _phrases(report.nodes.get(node.name, NodeFacts()))
        if not phrases and _is_uncounted_branch(node, topology, report):
            phrases = ["rows not counted"]
        if phrases:
            lines.append(f"  {node.name:<{width}}  {', '.join(phrases)}")
    skipped = sum(query.skipped for query in report.queries.values())
    if skipped:
        lines.append(f"  {plural(skipped, 'epoch')} had been committed before and {'was' if skipped == 1 else 'were'} not written again")
    lines += [f"  {note}" for note in report.notes]
    lines.append(f"  checkpoint: {report.checkpoint}")
    return "\n".join(lines)


def _phrases(facts: NodeFacts) -> list[str]:
    phrases = [phrase for metric in metrics_of(NodeFacts) if (phrase := metric.summary(facts))]
    if facts.guarantee and facts.epochs:
        phrases.insert(1, facts.guarantee.replace("_", " "))
    return phrases


def _is_uncounted_branch(node: AnyNode, topology: Topology, report: Report) -> bool:
    """Whether the rows of a branch were not counted, although those of another branch were. Only sinks count rows of transforms."""
    if not branch_read_by(node) or not topology.consumers(node.name):
        return False
    return any(_is_counted(each.name, report) for each in topology.consumers(node.inputs[0]) if branch_read_by(each))


def _is_counted(name: str, report: Report) -> bool:
    return name in report.nodes and report.nodes[name].rows_out is not None
