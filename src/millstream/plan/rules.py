"""The checks on a plan, in the order in which their findings are shown. Each is a function from the plan to diagnostics.

A rule says nothing about what another rule has already found broken: schemas behind a missing input are unknown, and unknown
schemas are never complained about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from millstream.errors import Diagnostic, Span, nearest
from millstream.plan.components import Problem, Sink, Transform
from millstream.plan.cutting import root_of
from millstream.plan.function_rules import called_functions_exist, functions_are_called_where_they_can_run, functions_are_found
from millstream.plan.nodes import Node
from millstream.plan.outcomes import letter_of
from millstream.plan.realtime import real_time_is_possible
from millstream.plan.schemas import Schemas, inputs_of, propagate
from millstream.plan.tables import is_table
from millstream.plan.timing import (
    event_times_can_be_read,
    finished_nodes_come_last,
    only_stateful_nodes_have_late_rows,
    state_is_not_over_changelogs,
    stateful_nodes_have_event_time,
    totals_are_over_rows,
)
from millstream.plan.topology import Topology

Rule = Callable[[Topology, Schemas], Iterator[Diagnostic]]
_SEPARATORS = frozenset("/\\\0\n")
_NAME = re.compile(r"[^\W\d_][\w-]*(\.[\w-]+)*")


def names_are_allowed(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    if not topology.name.strip() or topology.name.startswith(".") or set(topology.name) & _SEPARATORS:
        help_ = "its progress is kept in a folder of that name: leave out `/` and `\\`, and a dot at the start"
        yield Diagnostic("MS017", f"`{topology.name}` cannot be the name of a pipeline", help=help_)
    for node in topology.nodes:
        if not _NAME.fullmatch(node.name):
            help_ = "start with a letter; use letters, digits, `_`, `-` and dots"
            yield Diagnostic("MS017", f"`{node.name}` cannot be the name of a {node.kind}", node.span, help=help_)


def names_are_unique(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    first: dict[str, Node] = {}
    for node in topology.nodes:
        other = first.setdefault(node.name, node)
        if other is not node:
            line = f" in line {other.span.line}" if other.span else ""
            yield Diagnostic(
                "MS020", f"{node.kind} `{node.name}` has the name of a {other.kind}{line}", node.span, help="rename one of them"
            )


def inputs_exist(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    readable = [node.name for node in topology.nodes if node.kind != "sink" and not is_table(node)]
    for node in topology.nodes:
        for name in node.inputs:
            if name not in readable:
                other = topology.by_name.get(name)
                message = (
                    f"{node.kind} `{node.name}` reads `{name}`, which is a {'dynamic table' if is_table(other) else 'sink'}"
                    if other is not None
                    else f"unknown input `{name}` of {node.kind} `{node.name}`"
                )
                place = node.place("from", name) if ("from",) in node.spans else _named_at(node, name)
                yield Diagnostic("MS012", message, place or node.span, help=nearest(name, set(readable) - {node.name}))


def inputs_are_as_many_as_needed(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        if isinstance(node.component, Transform) and not node.component.readable:
            continue
        least, most = _arity(node, topology)
        count = len(node.inputs)
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            help_ = "add `from: NODE`" if count < least else "remove the others, or put a `union` before it"
            message = f"{node.kind} `{node.name}` takes {wanted} input{'s' if wanted != '1' else ''}, and has {count or 'none'}"
            yield Diagnostic("MS033", message, node.place("from"), help=help_)


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
        for option, target in (("on_error", node.dead_letter), ("late", letter_of(node.late))):
            what = "bad" if option == "on_error" else "late"
            if target and target not in sinks:
                message = f"`{node.name}` sends {what} rows to `{target}`, which is not a sink"
                yield Diagnostic("MS031", message, node.place(option), help=nearest(target, sinks))
            elif target == node.name:
                yield Diagnostic("MS031", f"sink `{target}` cannot be its own dead-letter sink", node.place(option))


def used_nodes(topology: Topology) -> set[str]:
    """What leads to an end, and the tables that are looked into."""
    used = {above.name for end in topology.ends for above in topology.upstream(end.name)}
    return used | {name for node in topology.nodes if isinstance(node.component, Transform) for name in node.component.looks_into}


def every_node_is_read(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    used = used_nodes(topology)
    for node in topology.nodes:
        if node.name not in used:
            help_ = "connect it to a sink, or remove it"
            yield Diagnostic("MS022", f"nothing reads {node.kind} `{node.name}`, so it will not run", node.span, "warning", help=help_)


def primary_keys_are_in_the_schema(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        schema = schemas.get(node.inputs[0]) if node.kind == "sink" and node.inputs else schemas.get(node.name)
        if schema is None:
            continue
        for column in node.options.primary_key:
            if column not in schema.names:
                message = f"primary key `{column}` is not a column of `{node.name}`"
                yield Diagnostic("MS025", message, node.place("primary_key"), help=nearest(column, schema.names))


def groups_share_a_query(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Sinks that commit together have the same epochs."""
    roots: dict[str, tuple[str, str]] = {}
    for sink in topology.sinks:
        group = sink.component.group if isinstance(sink.component, Sink) else ""
        above = topology.upstream(sink.name)
        broken = any(name not in topology.by_name for node in above for name in node.inputs)
        if not group or broken or any(_path_back(topology, node.name) for node in above):
            continue
        root = root_of(topology, sink.inputs[0]).name
        first, other = roots.setdefault(group, (sink.name, root))
        if other != root:
            message = f"sinks `{first}` and `{sink.name}` of the group `{group}` stand under different roots: `{other}` and `{root}`"
            yield Diagnostic("MS109", message, sink.place("commit_group"), help="only sinks with the same epochs can commit together")


def components_agree(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """What the components themselves find: unknown columns, types that a sink cannot take, functions that are not there."""
    for node in topology.nodes:
        for problem in node.component.problems(inputs_of(node, schemas), topology.directory):
            yield _diagnostic(node, problem)
        if isinstance(node.component, Transform) and node.isolates and (refusal := node.component.refuses_isolation()):
            yield Diagnostic("MS032", f"`{node.name}`: {refusal}", node.place("on_error"))


def logins_are_encrypted(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        if option := node.component.exposed:
            message = f"{node.kind} `{node.name}` may send its password to another host without encryption"
            help_ = "`sslmode: require` or `verify-full`" if option == "sslmode" else "`protocol: SASL_SSL`"
            yield Diagnostic("MS154", message, node.place(option) or node.span, "warning", help=help_)


RULES: tuple[Rule, ...] = (
    names_are_allowed,
    names_are_unique,
    inputs_exist,
    inputs_are_as_many_as_needed,
    no_cycle,
    both_ends_exist,
    dead_letters_exist,
    every_node_is_read,
    primary_keys_are_in_the_schema,
    event_times_can_be_read,
    components_agree,
    groups_share_a_query,
    functions_are_found,
    called_functions_exist,
    functions_are_called_where_they_can_run,
    stateful_nodes_have_event_time,
    state_is_not_over_changelogs,
    finished_nodes_come_last,
    totals_are_over_rows,
    only_stateful_nodes_have_late_rows,
    real_time_is_possible,
    logins_are_encrypted,
)


def check(topology: Topology, discovered: Schemas | None = None) -> tuple[Diagnostic, ...]:
    """All findings of all rules."""
    schemas = propagate(topology, discovered)
    return tuple(finding for rule in RULES for finding in rule(topology, schemas))


def text_place(node: Node, field: str, line: int, column: int, width: int = 1) -> Span | None:
    """A place inside a text field, such as a column in a query."""
    return node.text_place(field, line=line, column=column, width=width)


def _named_at(node: Node, name: str) -> Span | None:
    """Where the component's own text names an input."""
    for field, place in node.component.mentions(name) if isinstance(node.component, Transform) else ():
        return node.text_place(field, line=place.line, column=place.column, width=place.end - place.start)
    return node.span


def _diagnostic(node: Node, problem: Problem) -> Diagnostic:
    span = (
        node.text_place(problem.field, line=problem.line, column=problem.column, width=problem.width)
        if problem.line
        else node.place(*problem.field.split("."))
    )
    return Diagnostic(problem.code, f"{node.kind} `{node.name}`: {problem.message}", span, problem.level, help=problem.help)


def _arity(node: Node, topology: Topology) -> tuple[int, int | None]:
    if isinstance(node.component, Transform):
        return node.component.arity
    if node.kind == "source":
        return 0, 0
    return (0 if node.name in topology.dead_letters else 1), 1


def _path_back(topology: Topology, name: str) -> list[str]:
    """The way from a node back to itself, or nothing."""
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
