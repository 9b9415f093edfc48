"""Checks on options: problems that components report about themselves, keys and logins."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic, nearest
from millstream.plan.components import Problem
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.schemas import Schemas, inputs_of
from millstream.plan.topology import Topology


def primary_keys_are_in_the_schema(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        schema = schemas.get(node.inputs[0]) if node.kind == "sink" and node.inputs else schemas.get(node.name)
        if schema is None:
            continue
        for column in node.options.primary_key:
            if column not in schema.names:
                message = f"primary key `{column}` is not a column of `{node.name}`"
                yield Diagnostic("MS025", message, node.place("primary_key"), help=nearest(column, schema.names), node=node.name)


def components_agree(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Problems that the components report: unknown columns, types that a sink cannot take, functions that do not exist."""
    for node in topology.nodes:
        for problem in node.component.problems(inputs_of(node, schemas), topology.directory):
            yield diagnostic_of(node, problem)
        if isinstance(node, TransformNode) and node.isolates and (refusal := node.component.refuses_isolation()):
            yield Diagnostic("MS032", f"`{node.name}`: {refusal}", node.place("on_error"), node=node.name)


def logins_are_encrypted(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        if option := node.component.exposed:
            message = f"{node.kind} `{node.name}` may send its password to another host without encryption"
            help_ = "`sslmode: require` or `verify-full`" if option == "sslmode" else "`protocol: SASL_SSL`"
            yield Diagnostic("MS154", message, node.place(option) or node.span, "warning", help=help_, node=node.name)


def diagnostic_of(node: AnyNode, problem: Problem) -> Diagnostic:
    """A problem of a component, at the node that has it."""
    path = problem.field.split(".")
    span = node.text_place(*path, line=problem.line, column=problem.column, width=problem.width) if problem.line else node.place(*path)
    return Diagnostic(problem.code, f"{node.kind} `{node.name}`: {problem.message}", span, problem.level, help=problem.help, node=node.name)
