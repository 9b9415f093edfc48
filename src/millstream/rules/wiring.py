"""Checks on the graph: inputs exist, there is no cycle, every node leads to an output."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic, nearest
from millstream.plan.branches import branch_read_by, branches_of
from millstream.plan.components import NamesInputs
from millstream.plan.cutting import root_of
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.lookup_tables import is_table
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.rules.usage import input_place, used_nodes


def inputs_exist(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    readable = [node.name for node in topology.nodes if node.kind != "sink" and not is_table(node)]
    routes = {node.name for node in topology.nodes if branches_of(node)}
    for node in topology.nodes:
        for name in node.inputs:
            if name not in readable:
                other = topology.by_name.get(name)
                message = (
                    f"{node.kind} `{node.name}` reads `{name}`, which is a {'dynamic table' if is_table(other) else 'sink'}"
                    if other is not None
                    else f"unknown input `{name}` of {node.kind} `{node.name}`"
                )
                help_ = nearest(name, set(readable) - routes - {node.name})
                yield Diagnostic("MS012", message, input_place(node, name), help=help_, node=node.name, cause=name)


def side_outputs_see_sources(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    sources = {node.name for node in topology.sources}
    for watcher in topology.side_outputs:
        if watcher.name in topology.by_name:
            message = f"the name `{watcher.name}` is taken by a {topology.node(watcher.name).kind}"
            yield Diagnostic("MS020", message, watcher.span, help="give the side output another name", node=watcher.name)
        for name in watcher.sources:
            if name not in sources:
                message = f"side output `{watcher.name}` sees sources, and `{name}` is not one"
                place = watcher.source_spans.get(name, watcher.span)
                yield Diagnostic("MS012", message, place, help=nearest(name, sources), node=watcher.name, cause=name)


def inputs_are_as_many_as_needed(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        if isinstance(node.component, NamesInputs) and not node.component.readable:
            continue
        least, most = _arity(node, topology)
        count = len(node.inputs)
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            more = "add `from: NODE`" if not count else "add another node to `from`"
            help_ = more if count < least else "remove the others, or put a `union` before it"
            message = f"{node.kind} `{node.name}` takes {wanted} input{'s' if wanted != '1' else ''}, and has {count or 'none'}"
            yield Diagnostic("MS033", message, node.place("from"), help=help_, node=node.name)


def no_cycle(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    reported: set[str] = set()
    for node in topology.nodes:
        path = _path_back(topology, node.name)
        if path and not reported & set(path):
            reported |= set(path)
            yield Diagnostic("MS021", f"the nodes form a cycle: {' → '.join(f'`{name}`' for name in path)}", node.span)


def both_ends_exist(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    if not topology.sources:
        yield Diagnostic("MS023", f"pipeline `{topology.name}` has no source", help="add one under `sources:`")
    if not topology.sinks:
        yield Diagnostic(
            "MS023",
            f"pipeline `{topology.name}` has no sink",
            help="add one under `sinks:`; `{type: print, from: NODE}` shows rows",
        )


def dead_letters_exist(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    sinks = {sink.name for sink in topology.sinks}
    for node in topology.nodes:
        for option, target in (("on_error", node.dead_letter), ("late", dead_letter_sink_of(node.late))):
            what = "bad" if option == "on_error" else "late"
            if target and target not in sinks:
                message = f"`{node.name}` sends {what} rows to `{target}`, which is not a sink"
                yield Diagnostic("MS031", message, node.place(option), help=nearest(target, sinks), node=node.name, cause=target)
            elif target == node.name:
                yield Diagnostic("MS031", f"sink `{target}` cannot be its own dead-letter sink", node.place(option), node=node.name)


def every_node_is_read(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    used = used_nodes(topology)
    for node in topology.nodes:
        if node.name not in used and not branch_read_by(node):
            help_ = "connect it to a sink, or remove it"
            yield Diagnostic(
                "MS022", f"nothing reads {node.kind} `{node.name}`, so it will not run", node.span, "warning", help=help_, node=node.name
            )


def groups_share_a_query(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Sinks that commit together must have the same epochs."""
    roots: dict[str, tuple[str, str]] = {}
    for sink in topology.sinks:
        group = sink.component.group
        above = topology.up_to(sink.name)
        broken = any(name not in topology.by_name for node in above for name in node.inputs)
        if not group or broken or any(_path_back(topology, node.name) for node in above):
            continue
        root = root_of(topology, sink.inputs[0]).name
        first, other = roots.setdefault(group, (sink.name, root))
        if other != root:
            message = f"sinks `{first}` and `{sink.name}` of the group `{group}` have different roots: `{other}` and `{root}`"
            yield Diagnostic(
                "MS109", message, sink.place("commit_group"), help="only sinks with the same epochs can commit together", node=sink.name
            )


def _arity(node: AnyNode, topology: Topology) -> tuple[int, int | None]:
    if isinstance(node, TransformNode):
        return node.component.arity
    if node.kind == "source":
        return 0, 0
    return (0 if node.name in topology.dead_letters else 1), 1


def _path_back(topology: Topology, name: str) -> list[str]:
    """The path from a node back to itself; empty when there is none."""
    stack, seen = [[name]], {name}
    while stack:
        path = stack.pop()
        for parent in topology.by_name[path[-1]].inputs:
            if parent == name:
                return [name, *reversed(path)]
            if parent in topology.by_name and parent not in seen:
                seen.add(parent)
                stack.append([*path, parent])
    return []
