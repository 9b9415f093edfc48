"""The branches of routes: each branch is a node `ROUTE.BRANCH`, which YAML and Python both add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from millstream.plan.components import HasBranches, ReadsBranch, Transform
from millstream.plan.nodes import AnyNode, make_node
from millstream.plan.topology import Topology

DEFAULT = "default"
"""The branch of rows that match no route."""


def branches_of(node: AnyNode | None) -> tuple[str, ...]:
    """The branches of a route; none for any other node."""
    return node.component.branches if node is not None and isinstance(node.component, HasBranches) else ()


def branch_read_by(node: AnyNode) -> str:
    """The branch that a node is; empty for any other node."""
    return node.component.reads_branch if isinstance(node.component, ReadsBranch) else ""


def with_branches(nodes: Iterable[AnyNode], make: Callable[[str], Transform]) -> Iterator[AnyNode]:
    """The nodes, and after each route its branches. A node of the user's with the same name is not replaced."""
    given = list(nodes)
    written = {(node.name, node.inputs, branch_read_by(node)) for node in given}
    for node in given:
        yield node
        for branch in branches_of(node):
            name = f"{node.name}.{branch}"
            if (name, (node.name,), branch) not in written:
                yield make_node(name, make(branch), (node.name,), span=node.place("routes", branch))


def unread_branches(topology: Topology, used: set[str]) -> Iterator[tuple[AnyNode, str]]:
    """Branches without a reader, in routes that run."""
    for node in topology.nodes:
        read = {branch_read_by(reader) for reader in topology.consumers(node.name) if reader.name in used}
        for branch in branches_of(node) if node.name in used else ():
            if branch not in read:
                yield node, branch
