"""Hides findings that only follow from another one: one mistake is one finding."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.errors import Diagnostic
from millstream.plan.topology import Topology
from millstream.spec.nodes import NodeBuilder

_STANDING = {"MS012", "MS017", "MS020", "MS021", "MS024", "MS025", "MS028", "MS030", "MS031", "MS080"}
_STANDING |= {"MS181", "MS182", *(f"MS{number}" for number in range(158, 163))}
"""Findings about a node that do not depend on its wrong option."""


def without_echoes(
    findings: Iterable[Diagnostic], topology: Topology, builder: NodeBuilder, problems: list[Diagnostic]
) -> list[Diagnostic]:
    broken, repaired = builder.broken_names, builder.repaired_names
    readers = {node.name for node in topology.nodes if broken & set(node.inputs)}
    found = [finding for finding in findings if not _follows(finding, broken, readers, repaired)]
    found = [finding for finding in found if not (finding.code == "MS159" and finding.cause in builder.broken_functions)]
    failed = any(finding.level == "error" for finding in (*problems, *found))
    return [finding for finding in found if not (failed and finding.code in {"MS022", "MS168"})]


def without_unset(findings: list[Diagnostic]) -> list[Diagnostic]:
    """A variable that is not set leaves an empty value, which is not reported a second time."""
    unset = {finding.span for finding in findings if finding.code == "MS011"}
    return [finding for finding in findings if finding.code != "MS008" or finding.span not in unset]


def _follows(finding: Diagnostic, broken: set[str], readers: set[str], repaired: set[str]) -> bool:
    """Whether a finding follows from a node that could not be built as written: its readers may look wrong too."""
    if finding.code == "MS023":
        return bool(broken)
    if finding.code == "MS037":  # the missing option may be an event time
        return bool(broken or repaired)
    if finding.code not in _STANDING and finding.node in repaired:
        return True
    if finding.code in {"MS012", "MS031"}:
        return finding.cause in broken
    return finding.code == "MS030" and finding.node in readers
