"""Findings that only echo another one are not shown: one mistake is one finding."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.errors import Diagnostic
from millstream.plan.topology import Topology
from millstream.spec.building import NodeBuilder

_STANDING = {"MS012", "MS017", "MS020", "MS021", "MS024", "MS025", "MS028", "MS030", "MS031", "MS080"}
_STANDING |= {f"MS{number}" for number in range(158, 163)}
"""What can be said of a node although one of its options is wrong: what the missing option cannot be the cause of."""


def without_echoes(
    findings: Iterable[Diagnostic], topology: Topology, builder: NodeBuilder, problems: list[Diagnostic]
) -> list[Diagnostic]:
    broken, repaired = builder.broken_names, builder.repaired_names
    readers = {node.name for node in topology.nodes if broken & set(node.inputs)}
    found = [finding for finding in findings if not _follows(finding, broken, readers, repaired)]
    found = [finding for finding in found if not (finding.code == "MS159" and _names(finding, builder.broken_functions))]
    failed = any(finding.level == "error" for finding in (*problems, *found))
    return [finding for finding in found if not (failed and finding.code == "MS022")]


def _follows(finding: Diagnostic, broken: set[str], readers: set[str], repaired: set[str]) -> bool:
    """Whether a finding comes of a node that could not be built as written: what reads it may look like something else."""
    if finding.code == "MS023":
        return bool(broken)
    if finding.code == "MS037":  # an event time may be among what was left out
        return bool(broken or repaired)
    if finding.code not in _STANDING and _names(finding, repaired):
        return True
    return _names(finding, {"MS012": broken, "MS031": broken, "MS030": readers}.get(finding.code, set()))


def _names(finding: Diagnostic, nodes: set[str]) -> bool:
    return any(f"`{name}`" in finding.message for name in nodes)
