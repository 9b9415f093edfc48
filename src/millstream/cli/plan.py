"""`millstream plan`: what a run would do, and what changed since the last one, before anything runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags

if TYPE_CHECKING:
    from millstream.engine.planning import PlanView
    from millstream.plan.cutting import QueryPlan
    from millstream.plan.settings import Settings
    from millstream.plan.topology import Connection, Topology


def plan(
    pipeline: PipelineFile,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    offline: Annotated[bool, typer.Option(help="Do not start Spark: columns and types as far as they are known without it.")] = False,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Show queries, columns and settings of a pipeline, and what changed since its last run."""
    from millstream.engine.planning import require, view

    topology = load_or_fail(pipeline, config, setting_flags(set_), warn=False)
    if not offline and format is Format.text:
        narrate("asking Spark …")
    seen = view(topology, analyse=not offline)
    show(finding for finding in seen.findings if finding.level == "warning")
    if format is Format.json:
        print(json.dumps(_document(seen), indent=2))
    else:
        print(_text(seen))
    require(seen)


def _document(seen: PlanView) -> dict[str, Any]:
    from millstream.plan import types

    return {
        "pipeline": seen.topology.name,
        "queries": [
            {
                "name": query.plan.name,
                "sources": [node.name for node in query.plan.sources],
                "nodes": [node.name for node in query.plan.below],
                "sinks": [node.name for node in query.plan.sinks],
                "guarantees": guarantees(query.plan, seen.topology.settings),
                "stateful": [node.name for node in query.plan.above if node.stateful],
                "output_mode": query.plan.output_mode,
                "watermarks": {node.name: query.plan.delay_ms(node) for node in query.plan.clocks},
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


def _text(seen: PlanView) -> str:
    lines = [f"pipeline {seen.topology.name}", ""]
    for query in seen.queries:
        progress = f"epoch {query.committed} is committed" if query.committed >= 0 else "not started yet"
        steps = [query.plan.root.name, *(node.name for node in query.plan.below)]
        lines.append(f"query {query.plan.name} ({progress})")
        lines.append(f"  {' → '.join(steps)}  ⇒  {', '.join(node.name for node in query.plan.sinks)}")
        lines += [f"  {name}: {promise.replace('_', ' ')}" for name, promise in guarantees(query.plan, seen.topology.settings).items()]
        lines += _time(query.plan)
        lines += [f"  {'!' if change.breaking else '~'} {change.text}" for change in query.changes]
        if any(change.breaking for change in query.changes):
            sinks = ", ".join(node.name for node in query.plan.sinks)
            lines.append(f"  ! progress cannot stay: a run needs --reset {query.plan.name}, and {sinks} will receive rows again")
    return "\n".join([*lines, "", *_columns(seen), "", *_settings(seen.topology)])


def guarantees(plan: QueryPlan, settings: Settings) -> dict[str, str]:
    """Sink → what it promises, with the options that it has."""
    from millstream.plan.components import Sink
    from millstream.plan.realtime import promise

    return {node.name: promise(node.component, settings) for node in plan.sinks if isinstance(node.component, Sink)}


def _time(plan: QueryPlan) -> list[str]:
    """What a query with state goes by."""
    if not plan.stateful:
        return []
    remembering = ", ".join(node.name for node in plan.above if node.stateful)
    mode = "results once, when they have closed" if plan.output_mode == "append" else "results again whenever they change"
    clocks = [f"{node.name}.{node.options.event_time.column}" for node in plan.clocks if node.options.event_time]
    delays = [f"{clock} ({plan.delay_ms(node) / 1000:g} s behind)" for clock, node in zip(clocks, plan.clocks, strict=True)]
    held = "; held back to the end, since the input is bounded" if plan.held and delays else ""
    return [f"  remembers: {remembering}; {mode}", *([f"  goes by: {', '.join(delays)}{held}"] if delays else [])]


def _columns(seen: PlanView) -> list[str]:
    from millstream.plan import types

    lines = ["columns"]
    for node in seen.topology.ordered():
        if node.kind == "sink":
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
    """Setting, value and the place it comes from."""
    from millstream.plan.running import checkpoint_of

    values = _flat(topology.settings.model_dump(mode="json", by_alias=True))
    values["checkpoint"] = checkpoint_of(topology)
    return [(name, value, topology.origins.get(name, "default")) for name, value in values.items() if value is not None]


def options_of(connection: Connection) -> list[tuple[str, Any, str]]:
    """Option of a connection, value and the place it comes from; secrets are not shown."""
    from millstream.secrets import masked

    values = _flat(masked("", connection.options))
    return [(name, value, connection.origins.get(name, "pipeline")) for name, value in values.items()]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found
