"""The last words of a run, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.observe.facts import NodeFacts
from millstream.observe.metrics import metrics_of, plural

if TYPE_CHECKING:
    from millstream.observe.report import Report
    from millstream.plan.topology import Topology

_MARKS = {"done": "✓", "stopped": "■", "failed": "✗"}


def summary(topology: Topology, report: Report) -> str:
    """What was read, what was written where, and how long it took."""
    lines = [
        f"{_MARKS.get(report.state, '·')} {report.pipeline} {report.state} in {report.seconds:.1f} s, {plural(report.epochs, 'epoch')}"
    ]
    width = max((len(node.name) for node in topology.nodes), default=0)
    for node in topology.nodes:
        facts = report.nodes.get(node.name)
        if facts is None:
            continue
        told = [sentence for metric in metrics_of(NodeFacts) if (sentence := metric.sentence(facts))]
        if facts.guarantee and facts.epochs:
            told.insert(1, facts.guarantee.replace("_", " "))
        if told:
            lines.append(f"  {node.name:<{width}}  {', '.join(told)}")
    skipped = sum(query.skipped for query in report.queries.values())
    if skipped:
        lines.append(f"  {plural(skipped, 'epoch')} had been committed before and {'was' if skipped == 1 else 'were'} not written again")
    lines += [f"  {note}" for note in report.notes]
    lines.append(f"  progress is kept in {report.checkpoint}")
    return "\n".join(lines)
