"""Checks on queries that are kept up to date: what the engine would refuse, as far as options and schemas show it."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.changelog import op_of
from millstream.plan.components import NamesInputs, RefusesIncremental
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import AnyNode, SourceNode, TransformNode
from millstream.plan.schemas import Schemas, inputs_of
from millstream.plan.topology import Topology
from millstream.rules.options import diagnostic_of
from millstream.rules.queries import queries_of


def changelogs_have_keys(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Changes are applied to rows by their primary key."""
    feeding = dict.fromkeys(name for plan in _queries(topology, schemas) for name in plan.feeding)
    for node in (topology.node(name) for name in feeding):
        schema = schemas.get(node.name)
        if schema is not None and op_of(schema.names) and _has_no_key(topology, node):
            message = f"`{node.name}` is a changelog without a primary key, so its changes cannot be applied to rows"
            yield Diagnostic("MS177", message, node.span, help=f"add `primary_key: COLUMN` to `{node.name}`", node=node.name)


def results_can_be_kept(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """What a component would have to compute anew each time, and results that cannot be stored."""
    found: dict[Diagnostic, None] = {}
    for plan in _queries(topology, schemas):
        for node in plan.maintained:
            if not isinstance(node.component, RefusesIncremental):
                continue
            inputs = inputs_of(node, schemas)
            declared = {name for name in inputs if isinstance(topology.by_name.get(name), SourceNode)}
            problems = node.component.incremental_problems(inputs, declared, returned=node is plan.root)
            found.update((diagnostic_of(node, problem), None) for problem in problems)
    yield from found


def _queries(topology: Topology, schemas: Schemas) -> tuple[QueryPlan, ...]:
    """The queries, if something in the plan is incremental."""
    return queries_of(topology, schemas) if any(node.component.incremental for node in topology.transforms) else ()


def _has_no_key(topology: Topology, node: AnyNode) -> bool:
    """Whether a node certainly has no key: none is declared, none inherited, and no system knows one. Spark follows keys through SQL."""
    if node.options.primary_key:
        return False
    if isinstance(node, SourceNode):
        return node.component.keyless
    if not isinstance(node, TransformNode) or node.stateful or node.primary_key or len(node.inputs) != 1:
        return False
    return not isinstance(node.component, NamesInputs) and _has_no_key(topology, topology.node(node.inputs[0]))
