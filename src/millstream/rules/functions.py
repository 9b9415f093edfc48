"""Checks on the user's functions: they exist, their names are allowed, and they are called only where they can run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from sqlglot import exp

from millstream.errors import Diagnostic
from millstream.plan.declarations import UserFunction, undeclared
from millstream.plan.nodes import Node
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.sql.check.builtins import BUILTINS, OWN_AGGREGATES
from millstream.sql.check.calls import mentions
from millstream.sql.check.known_functions import nearest_function, unknown_functions
from millstream.sql.check.query import parse_query
from millstream.sql.own_functions import OWN_FUNCTIONS

_NAME = re.compile(r"[A-Za-z]\w*")


def functions_are_found(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Names and references; nothing is imported."""
    seen: dict[str, str] = {}
    for used in topology.functions:
        yield from _name_problems(used, seen)
        problem = used.options.function.problem(topology.directory)
        if problem:
            yield Diagnostic("MS016", f"function `{used.name}`: {problem}", used.span)
        elif used.options.returns is None and used.source_says(topology.directory) == {}:
            yield undeclared(used)


def functions_are_called_where_they_can_run(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    aggregates = {used.name for used in topology.functions if used.aggregates(topology.directory)}
    for node in topology.nodes if topology.functions else ():
        called = calls_of(node, topology.functions)
        if called and node.isolates and not hasattr(node.component, "aggregate"):
            message = f"`{node.name}` calls `{called[0].name}`, and rejects of your own functions cannot be isolated in SQL"
            help_ = "return null for what the function cannot handle, or use a `python` transform"
            yield Diagnostic("MS032", message, node.place("on_error"), help=help_, node=node.name, cause=called[0].name)
        for name in _aggregates_without_group(node, [used.name for used in called if used.name in aggregates]):
            message = f"`{node.name}` calls the aggregate function `{name}` where there is no group"
            yield Diagnostic(
                "MS080", message, node.place("sql"), help=f"write `SELECT key, {name}(…) FROM … GROUP BY key`", node=node.name, cause=name
            )


def calls_of(node: Node, functions: Iterable[UserFunction]) -> tuple[UserFunction, ...]:
    """The user's functions that a node's SQL calls; a name before a bracket counts."""
    known = {used.name: used for used in functions}
    if not known or node.kind != "transform" or node.component.type in {"python", "script"}:
        return ()
    return tuple(known[name] for name in mentions(_text(node), known))


def _text(node: Node) -> str:
    sql = getattr(node.component, "sql", None)
    return sql if isinstance(sql, str) else json.dumps(node.component.model_dump(mode="json"))


def _aggregates_without_group(node: Node, aggregates: list[str]) -> list[str]:
    """Aggregates that are called outside of a query with GROUP BY."""
    sql = getattr(node.component, "sql", None)
    if not isinstance(sql, str):
        return mentions(json.dumps(node.component.model_dump(mode="json", exclude={"aggregate"})), aggregates)
    tree = parse_query(sql).tree
    calls = [call for call in tree.find_all(exp.Anonymous) if call.name.lower() in map(str.lower, aggregates)] if tree is not None else []
    return list(dict.fromkeys(call.name for call in calls if not _is_grouped(call)))


def _is_grouped(call: exp.Expr) -> bool:
    select = call.find_ancestor(exp.Select)
    return select is not None and (select.args.get("group") is not None or call.find_ancestor(exp.Window) is not None)


def _name_problems(used: UserFunction, seen: dict[str, str]) -> Iterator[Diagnostic]:
    lowered = used.name.lower()
    if not _NAME.fullmatch(used.name):
        help_ = "start with a letter; use letters, digits and `_`"
        yield Diagnostic("MS017", f"`{used.name}` cannot be the name of a function", used.span, help=help_)
    if lowered in BUILTINS | OWN_AGGREGATES or lowered in OWN_FUNCTIONS:
        whose = "Spark" if lowered in BUILTINS else "Millstream"
        yield Diagnostic("MS019", f"`{used.name}` is a function of {whose}'s own", used.span, help=f"call it `my_{lowered}`, for example")
    if lowered in seen:
        message = f"functions `{seen[lowered]}` and `{used.name}` have the same name: SQL ignores case here"
        yield Diagnostic("MS020", message, used.span, help="rename one of them")
    seen[lowered] = used.name


def called_functions_exist(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Functions that neither Spark nor the pipeline has. A name without a similar one may belong to the session: Spark decides."""
    if "spark.sql.extensions" in topology.settings.spark:
        return
    own = {used.name.lower() for used in topology.functions}
    for node in topology.nodes:
        for field, text, shift in _queries(node):
            for name, place in unknown_functions(parse_query(text), own):
                span = node.text_place(*field, line=place.line, column=place.column - (shift if place.line == 1 else 0), width=len(name))
                help_ = nearest_function(name, own)
                resembles = help_.startswith("did you mean")
                message = f"{node.kind} `{node.name}`: unknown function `{name}`"
                level: Literal["error", "warning"] = "error" if resembles else "warning"
                yield Diagnostic("MS159", message, span, level, help=help_, node=node.name, cause=name)


def _queries(node: Node) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """The SQL of a node: its option, the query, and the column in the first line where the option's text begins."""
    options = node.component.model_dump(include={"sql", "where", "columns", "aggregate", "routes"})
    if node.component.type == "sql":
        yield ("sql",), options["sql"], 0
    if node.component.type in {"filter", "select", "with_columns", "window", "aggregate", "route"}:
        start = "SELECT "
        for field, value in options.items():
            for name, text in value.items() if isinstance(value, dict) else [("", value)]:
                yield (field, name) if name else (field,), f"{start}{text}", len(start)
