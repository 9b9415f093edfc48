"""The last words of a run, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.observe.report import Report
    from millstream.plan.topology import Topology

_MARKS = {"done": "✓", "stopped": "■", "failed": "✗"}


def summary(topology: Topology, report: Report) -> str:
    """What was read, what was written where, and how long it took."""
    lines = [
        f"{_MARKS.get(report.state, '·')} {report.pipeline} {report.state} in {report.seconds:.1f} s, {_plural(report.epochs, 'epoch')}"
    ]
    width = max((len(node.name) for node in topology.nodes), default=0)
    for node in topology.nodes:
        facts = report.nodes.get(node.name)
        if facts is None:
            continue
        count = facts.rows_in if node.kind == "sink" else facts.rows_out
        verb = {"source": "read", "transform": "passed", "sink": "wrote"}[node.kind]
        told = [f"{verb} {_plural(count, 'row')}"] if count is not None else []
        told += [facts.guarantee.replace("_", " ")] if facts.guarantee and facts.epochs else []
        told += [_plural(facts.rejected, "bad row")] if facts.rejected else []
        told += [_plural(facts.late, "late row")] if facts.late else []
        told += [f"{_plural(facts.lost, 'message')} lost before they were read"] if facts.lost else []
        told += [f"{_plural(facts.hits, 'hit')}, {facts.misses or 0:,} missed"] if facts.hits is not None else []
        told += [f"remembers {_plural(facts.state.rows, 'row')}"] if facts.state and facts.state.rows else []
        if told:
            lines.append(f"  {node.name:<{width}}  {', '.join(told)}")
    skipped = sum(query.skipped for query in report.queries.values())
    if skipped:
        lines.append(f"  {_plural(skipped, 'epoch')} had been committed before and {'was' if skipped == 1 else 'were'} not written again")
    lines += [f"  {note}" for note in report.notes]
    lines.append(f"  progress is kept in {report.checkpoint}")
    return "\n".join(lines)


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
