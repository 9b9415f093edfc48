"""A run and its plan as plain data: what the page, the terminal and other programs get."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from millstream.inspector.attended import AttendedRun
from millstream.inspector.health import health_of
from millstream.observe.facts import Caution, NodeFacts, QueryFacts, Snapshot
from millstream.observe.metrics import metrics_of
from millstream.plan import types
from millstream.plan.cutting import cut
from millstream.plan.document import node_document
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.nodes import AnyNode, SinkNode, TransformNode
from millstream.plan.topology import Topology
from millstream.secrets import redacted

_NOTES = 50


def as_json(run: AttendedRun, data: Mapping[str, Any]) -> str:
    """The data as JSON, without secrets."""
    return json.dumps(redacted(data, run.redact), default=str)


def run_document(run: AttendedRun) -> dict[str, Any]:
    """What does not change during a run."""
    return {
        "name": run.name,
        "run": run.run,
        "process": run.process,
        "began": run.began,
        "ended": run.ended_at,
        "checkpoint": run.checkpoint.storage.url,
        "labels": run.topology.settings.telemetry.labels,
    }


def status_document(run: AttendedRun) -> dict[str, Any]:
    """Where a run stands."""
    run.count_rates()
    snapshot, now = run.recorder.snapshot(), time.monotonic()
    places = {node.name: place for place, node in enumerate(run.topology.ordered())}
    nodes = sorted(snapshot.nodes.items(), key=lambda each: places.get(each[0], len(places)))
    health = health_of(snapshot, run.gate.is_paused)
    rates = {name: round(run.rates.of(name, now), 1) for name in snapshot.nodes}
    sources = [name for name, facts in snapshot.nodes.items() if facts.kind == "source"]
    return {
        "name": run.name,
        "run": run.run,
        "state": snapshot.state,
        "health": asdict(health),
        "paused": run.gate.is_paused,
        "seconds": round(snapshot.seconds, 3),
        "rows_per_second": round(sum(rates[name] for name in sources), 1),
        "nodes": {name: {**_node_facts(facts), "rows_per_second": rates[name]} for name, facts in nodes},
        "queries": {name: _query_facts(facts) for name, facts in snapshot.queries.items()},
        "notes": _notes(snapshot),
    }


def topology_document(run: AttendedRun) -> dict[str, Any]:
    """The nodes and edges of a plan, and the queries that run them."""
    topology, schemas = run.topology, run.schemas
    plans, owners = cut(topology), dict[str, str]()
    for plan in plans:
        for node in (*plan.nodes, *plan.sinks):
            owners.setdefault(node.name, plan.name)
    owners |= {plan.root.name: plan.name for plan in plans}
    return {
        "name": topology.name,
        "nodes": [_node(node, owners.get(node.name, "")) | {"columns": _columns(node, schemas)} for node in topology.ordered()],
        "edges": [edge for node in topology.nodes for edge in _edges(node, topology)],
        "queries": [
            {"name": plan.name, "sources": [node.name for node in plan.sources], "sinks": [node.name for node in plan.sinks]}
            for plan in plans
        ],
    }


def _node(node: AnyNode, query: str) -> dict[str, Any]:
    document = node_document(node)
    sql = document.pop("sql", "")
    return {
        "name": node.name,
        "kind": node.kind,
        "type": document.pop("type"),
        "description": document.pop("description", ""),
        "query": query,
        "sql": sql if isinstance(sql, str) else "",
        "options": {name: value for name, value in document.items() if name != "from"},
        "target": node.component.address_text if isinstance(node, SinkNode) else "",
    }


def _columns(node: AnyNode, schemas: Mapping[str, pa.Schema | None]) -> list[dict[str, str]]:
    """The columns of a node with their types, as far as they are known without Spark; for a sink those that it receives."""
    schema = schemas.get(node.inputs[0] if node.kind == "sink" and node.inputs else node.name)
    return [{"name": name, "type": kind} for name, kind in types.columns(schema).items()] if schema is not None else []


def _edges(node: AnyNode, topology: Topology) -> list[dict[str, str]]:
    found = [{"from": name, "to": node.name, "kind": "rows"} for name in node.inputs]
    if node.dead_letter:
        found.append({"from": node.name, "to": node.dead_letter, "kind": "rejects"})
    if letter := dead_letter_sink_of(node.late):
        found.append({"from": node.name, "to": letter, "kind": "late"})
    tables = node.lookup_names if isinstance(node, TransformNode) else ()
    return found + [{"from": name, "to": node.name, "kind": "lookup"} for name in tables if name in topology.by_name]


def _node_facts(facts: NodeFacts) -> dict[str, Any]:
    counts = {metric.name: metric.plain(facts) for metric in metrics_of(NodeFacts) if metric.value(facts) is not None}
    return {"kind": facts.kind, **({"guarantee": facts.guarantee} if facts.guarantee else {}), **counts}


def _query_facts(facts: QueryFacts) -> dict[str, Any]:
    return {name: value for name, value in asdict(facts).items() if value is not None and name not in {"durations", "rows_per_second"}}


def _notes(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [{"message": str(note), "warning": isinstance(note, Caution)} for note in snapshot.notes[-_NOTES:]]
