"""Checks on routes: other nodes read their branches; rows of a branch without a reader are dropped."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic, nearest
from millstream.plan.branches import DEFAULT, branch_read_by, branches_of, unread_branches
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.rules.functions import calls_of
from millstream.rules.queries import queries_of
from millstream.rules.usage import input_place, used_nodes
from millstream.sql.check.query import reads_clock


def routes_are_read_by_branch(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        for name in node.inputs:
            if (other := topology.by_name.get(name)) is not None and (finding := _branch_problem(node, other)) is not None:
                yield finding


def branches_are_read(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node, branch in unread_branches(topology, used_nodes(topology)):
        rows = "rows that match no route" if branch == DEFAULT else "its rows"
        message = f"nothing reads branch `{branch}` of route `{node.name}`: {rows} are dropped"
        help_ = f"read it, such as `from: {node.name}.{branch}`; to drop rows on purpose, send them to a `blackhole` sink"
        yield Diagnostic("MS168", message, node.place("routes", branch) or node.span, "warning", help=help_, node=node.name, cause=branch)


def varying_routes_have_one_query(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Each query computes the conditions of a route itself: conditions that vary would send a row to two branches, or to none."""
    routes = [node for node in topology.transforms if branches_of(node) and _varies(node, topology)]
    plans = queries_of(topology, schemas) if routes else ()
    for node in routes:
        queries = [plan.name for plan in plans if node.name in {each.name for each in plan.nodes}]
        if len(queries) > 1:
            named = " and ".join(f"`{name}`" for name in queries)
            message = f"the conditions of route `{node.name}` vary, and queries {named} would compute them twice, with different results"
            help_ = "compute the value that decides in a column of a node that one query reads, or read all branches below the same root"
            yield Diagnostic("MS174", message, node.place("routes") or node.span, help=help_, node=node.name)


def _varies(node: TransformNode, topology: Topology) -> bool:
    """Whether a second computation may give other branches: random values, the time, or a function that says so."""
    texts = [str(text) for text in getattr(node.component, "routes", {}).values()]
    clock = any(map(reads_clock, texts))
    return (
        clock or not node.component.deterministic or any(used.options.deterministic is False for used in calls_of(node, topology.functions))
    )


def _branch_problem(node: AnyNode, other: AnyNode) -> Diagnostic | None:
    """The problem with the way in which a node reads another, where one of them is a route or a branch."""
    branch, known = branch_read_by(node), branches_of(other)
    if known and not branch:
        named = ", ".join(f"`{other.name}.{each}`" for each in known)
        message = f"{node.kind} `{node.name}` reads the route `{other.name}` itself"
        return Diagnostic(
            "MS012", message, input_place(node, other.name), help=f"read one of its branches: {named}", node=node.name, cause=other.name
        )
    if branch and not known:
        return Diagnostic(
            "MS012",
            f"`{node.name}` reads a branch of `{other.name}`, which is not a route",
            input_place(node, other.name),
            node=node.name,
            cause=other.name,
        )
    if branch and branch not in known:
        return Diagnostic(
            "MS012",
            f"route `{other.name}` has no branch `{branch}`",
            node.place("branch"),
            help=nearest(branch, known),
            node=node.name,
            cause=other.name,
        )
    return None
