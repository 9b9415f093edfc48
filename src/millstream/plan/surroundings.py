"""What a transform is told about the nodes above it: how a query runs depends on whether its inputs are changelogs."""

from __future__ import annotations

from dataclasses import replace

from millstream.plan.nodes import AnyNode, SourceNode, TransformNode


def with_surroundings(nodes: tuple[AnyNode, ...]) -> tuple[AnyNode, ...]:
    """The nodes; each transform knows whether an input is a changelog, and whether a node above keeps state."""
    by_name = {node.name: node for node in nodes}
    done: dict[str, AnyNode] = {}
    changes: dict[str, bool] = {}
    state: dict[str, bool] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        node = by_name.get(name)
        if node is None or name in done or name in above:
            return
        for parent in node.inputs:
            visit(parent, (*above, name))
        over = any(changes.get(parent, False) for parent in node.inputs)
        keeps = any(state.get(parent, False) for parent in node.inputs)
        if isinstance(node, SourceNode):
            over = node.component.emits_changes
        elif isinstance(node, TransformNode):
            component = node.component.over(changes=over, state=keeps)
            node = node if component is node.component else replace(node, component=component)
            updates = (component.incremental and not component.final) or (component.stateful and component.output_mode == "update")
            over = updates or (over and not component.stateful and component.keeps_changes)
            keeps = keeps or component.stateful
        done[name], changes[name], state[name] = node, over, keeps

    for node in nodes:
        visit(node.name, ())
    return tuple(done.get(node.name, node) for node in nodes) if len(by_name) == len(nodes) else nodes
