"""The output of `millstream plan`: as text, and as a JSON object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.plan import types
from millstream.plan.branches import branches_of
from millstream.plan.components import Expiring, Sink
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.paths import path_to_sink, paths_to_root, reads_of, tables_beside
from millstream.plan.run_options import checkpoint_of
from millstream.rules.real_time import promise
from millstream.secrets import mask_option

if TYPE_CHECKING:
    from millstream.engine.offline.preview import OperatorView, PlanView, QueryView
    from millstream.plan.cutting import QueryPlan
    from millstream.plan.settings import Settings
    from millstream.plan.topology import Connection, Topology

_MAX_PATHS = 8
"""The maximum number of paths to a root that are shown."""
_COUNTED = re.compile(r"one row|\d+ rows|bounded inputs")
"""Bounds that depend on no input's age."""


def document(seen: PlanView) -> dict[str, Any]:
    """The plan as a JSON object."""
    return {
        "pipeline": seen.topology.name,
        "queries": [
            {
                "name": query.plan.name,
                "sources": [node.name for node in query.plan.sources],
                "reads": {node.name: query.plan.scans(node) for node in query.plan.sources},
                "paths": [list(path) for path in paths_to_root(query.plan)],
                "tables": {name: list(tables) for name, tables in _tables(query.plan, seen.topology).items()},
                "nodes": [node.name for node in query.plan.below],
                "sinks": [node.name for node in query.plan.sinks],
                "guarantees": guarantees(query.plan, seen.topology.settings),
                "runs": {node.name: runs_as(node) for node in query.plan.nodes if node.kind == "transform"},
                "operators": [_operator(each) for each in query.operators],
                "result_key": list(query.key) if query.key is not None else None,
                "stateful": [node.name for node in query.plan.above if node.stateful],
                "output_mode": query.plan.output_mode,
                "watermarks": {node.name: query.plan.delay_ms(node.name) for node in query.plan.clocks},
                "last_epoch": query.committed if query.committed >= 0 else None,
                "changes": [{"text": change.text, "breaking": change.breaking} for change in query.changes],
            }
            for query in seen.queries
        ],
        "columns": {name: types.columns(schema) if schema is not None else None for name, schema in seen.schemas.items()},
        "settings": {name: {"value": value, "from": place} for name, value, place in settings_of(seen.topology)},
        "connections": {
            each.name: {name: {"value": value, "from": place} for name, value, place in options_of(each)}
            for each in seen.topology.connections
        },
        "findings": [finding.as_dict() for finding in seen.findings],
    }


def _operator(operator: OperatorView) -> dict[str, Any]:
    return {
        "kind": operator.kind,
        "inputs": operator.inputs,
        "key": operator.key,
        "keeps": list(operator.keeps),
        "cost": operator.cost,
        "mb_per_million_rows": list(operator.row_bytes),
        "bounded_by": operator.bounded_by or None,
    }


def text(seen: PlanView) -> str:
    """The plan as text."""
    lines = [f"pipeline {seen.topology.name}", ""]
    for query in seen.queries:
        progress = f"epoch {query.committed} is committed" if query.committed >= 0 else "not started yet"
        lines.append(f"query {query.plan.name} ({progress})")
        lines += [f"  {path}" for path in _paths(query.plan)]
        lines += [f"  {name}: {promise.replace('_', ' ')}" for name, promise in guarantees(query.plan, seen.topology.settings).items()]
        lines += _state(query.plan)
        lines += _incremental(query)
        lines += [f"  {name} looks up rows in {', '.join(tables)}" for name, tables in _tables(query.plan, seen.topology).items()]
        lines += [f"  {'!' if change.breaking else '~'} {change.text}" for change in query.changes]
        if any(change.breaking for change in query.changes):
            sinks = ", ".join(node.name for node in query.plan.sinks)
            lines.append(
                f"  ! the change does not fit the checkpoint: a run needs --reset {query.plan.name}, and {sinks} will receive rows again"
            )
    return "\n".join([*lines, "", *_reads(seen), "", *_columns(seen), "", *_settings(seen.topology)])


def _paths(plan: QueryPlan) -> list[str]:
    """The paths of rows from the sources to the root, and from the root to the sinks. With one source, each line has the whole path."""
    above = paths_to_root(plan)
    single = above[0] if len(above) == 1 else ()
    lines = [] if single else [" → ".join(path) for path in above[:_MAX_PATHS]]
    lines += [f"… and {len(above) - _MAX_PATHS} more paths to {plan.root.name}"] if len(above) > _MAX_PATHS else []
    for sink in plan.sinks:
        path = path_to_sink(plan, sink)
        if path:
            lines.append(f"{' → '.join((*single[:-1], *path))}  ⇒  {sink.name}")
        dead_letters = (("rejects", plan.nodes_rejecting_to(sink)), ("late rows", plan.late_rows_of(sink)))
        lines += [f"{what} of {', '.join(node.name for node in nodes)}  ⇒  {sink.name}" for what, nodes in dead_letters if nodes]
    filled = [(node, path_to_sink(plan, node)) for node in plan.filling]
    return lines + [f"{' → '.join((*single[:-1], *path))}  ⇒  {node.name} (dynamic table)" for node, path in filled]


def _tables(plan: QueryPlan, topology: Topology) -> dict[str, tuple[str, ...]]:
    return {node.name: tables for node in plan.nodes if (tables := tables_beside(node, topology))}


def _reads(seen: PlanView) -> list[str]:
    """How often each source is read."""
    lines = ["sources"]
    for source in seen.topology.sources:
        reads = reads_of(source, [query.plan for query in seen.queries])
        shown = ", ".join(f"{_times(count)} by query {name}" for name, count in reads.items())
        lines.append(f"  {source.name}: read per epoch {shown}" if reads else f"  {source.name}: not read")
    return lines


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def guarantees(plan: QueryPlan, settings: Settings) -> dict[str, str]:
    """Sink → its guarantee with its options."""
    return {node.name: promise(node.component, settings) for node in plan.sinks if isinstance(node.component, Sink)}


def _state(plan: QueryPlan) -> list[str]:
    """The nodes with state, and the columns that the watermark comes from."""
    if not plan.stateful:
        return []
    nodes = ", ".join(node.name for node in plan.above if node.stateful)
    updates = plan.maintained or plan.output_mode == "update"
    mode = "a result again whenever it changes" if updates else "each result once, when it has closed"
    mode = "its result once, when the inputs have ended" if plan.final else mode
    clocks = [f"{node.name}.{node.options.event_time.column}" for node in plan.clocks if node.options.event_time]
    delays = [f"{clock} ({plan.delay_ms(node.name) / 1000:g} s behind)" for clock, node in zip(clocks, plan.clocks, strict=True)]
    held = "; held back until the bounded input ends" if plan.held and delays else ""
    return [f"  state in: {nodes}; {mode}", *([f"  watermark from: {', '.join(delays)}{held}"] if delays else [])]


def runs_as(node: AnyNode) -> str:
    """How Spark runs a transform: statelessly, with its own streaming operators, or from the changes of its inputs."""
    if not isinstance(node, TransformNode) or not node.stateful:
        return "stateless"
    if node.component.incremental:
        return "incremental"
    return "native updating" if node.component.output_mode == "update" else "native"


def _incremental(query: QueryView) -> list[str]:
    """Why nodes are incremental, and the operators that keep the root's result up to date."""
    reasons = [(node.name, node.component.why_incremental) for node in query.plan.maintained if node.component.incremental]
    lines = [f"  {name} is incremental: {why}" if why else f"  {name} is incremental" for name, why in reasons]
    names = {"input": "input {0}", "table": "table {0}", "native": "native {0}", "by key": "computed again"}
    shown = [
        (
            names.get(each.kind, each.kind).format(each.inputs),
            _key(each),
            f"computes {each.cost}" if each.keeps else "",
            _keeps(each),
        )
        for each in query.operators
    ]
    widths = [max((len(row[place]) for row in shown), default=0) for place in range(3)]
    lines += [f"    {kind:<{widths[0]}}  {key:<{widths[1]}}  {cost:<{widths[2]}}  {keeps}".rstrip() for kind, key, cost, keeps in shown]
    if query.operators:
        key = f"by {', '.join(query.key)}" if query.key else "of one row" if query.key is not None else "of whole rows"
        lines += [f"    {'result':<{widths[0]}}  {'once' if query.plan.final else f'changes {key}'}", *_growth(query)]
    return lines


def _key(operator: OperatorView) -> str:
    return "over all rows" if operator.key == "all rows" else f"by {operator.key}" if operator.key else ""


def _keeps(operator: OperatorView) -> str:
    """What an operator keeps, with its estimated size."""
    if operator.bounded_by == "one row":
        return "keeps one row"
    if _COUNTED.fullmatch(operator.bounded_by):
        return f"keeps {' and '.join(operator.keeps)}"
    stores = [f"{words} ({size} MB per million)" for words, size in zip(operator.keeps, operator.row_bytes, strict=False)]
    return f"keeps {' and '.join(stores or operator.keeps)}" if operator.keeps else ""


def _growth(query: QueryView) -> list[str]:
    """What grows without bound, or what bounds it."""
    keeping = [each for each in query.operators if each.keeps]
    if not keeping:
        return []
    growing = [each for each in keeping if not each.bounded_by]
    if not growing:
        bounds = dict.fromkeys(name for each in keeping if not _COUNTED.fullmatch(each.bounded_by) for name in each.bounded_by.split(", "))
        return [f"    bounded: it keeps rows of {' and '.join(bounds)}"] if bounds else []
    inputs = ", ".join(dict.fromkeys(name for each in growing for name in each.inputs.split(", ")))
    if any(each.kind == "native" for each in query.operators):  # a `ttl` would make all of it incremental, which means something else
        return [f"    grows without bound with {inputs}"]
    nodes = [node.name for node in query.plan.maintained if isinstance(node.component, Expiring) and node.component.ttl is None]
    fed = [name for name in nodes if any(above in query.plan.feeding for above in query.plan.node(name).inputs)]
    return [f"    grows without bound with {inputs}" + (f"; `ttl` on {' and '.join(fed)} bounds it" if fed else "")]


def _columns(seen: PlanView) -> list[str]:
    lines = ["columns"]
    for node in seen.topology.ordered():
        if node.kind == "sink" or branches_of(node):  # the branches of a route have its columns
            continue
        schema = seen.schemas.get(node.name)
        shown = ", ".join(f"{name} {kind}" for name, kind in types.columns(schema).items()) if schema is not None else "known when it runs"
        key = f"  (by {', '.join(node.primary_key)})" if node.primary_key else ""
        lines.append(f"  {node.name}: {shown}{key}")
    return lines


def _settings(topology: Topology) -> list[str]:
    lines = ["settings"]
    lines += [f"  {name} = {value}  ({place})" for name, value, place in settings_of(topology)]
    for connection in topology.connections:
        lines.append(f"connection {connection.name}")
        lines += [f"  {name} = {value}  ({place})" for name, value, place in options_of(connection)]
    return lines


def settings_of(topology: Topology) -> list[tuple[str, Any, str]]:
    """Name, value and origin of each setting."""
    values = _flat(topology.settings.model_dump(mode="json", by_alias=True))
    values["checkpoint"] = checkpoint_of(topology)
    return [(name, value, topology.origins.get(name, "default")) for name, value in values.items() if value is not None]


def options_of(connection: Connection) -> list[tuple[str, Any, str]]:
    """Name, value and origin of each option of a connection. Secrets are hidden."""
    values = _flat(mask_option("", connection.options))
    return [(name, value, connection.origins.get(name, "pipeline")) for name, value in values.items()]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found
