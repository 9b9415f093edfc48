"""Checks on event time and state: every stateful node can close its results, and none is placed where it cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millstream.errors import Diagnostic, nearest
from millstream.plan.changelog import OPS
from millstream.plan.components import Expiring, NamesInputs, Windowed
from millstream.plan.nodes import AnyNode, SourceNode, TransformNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology

_AGGREGATED = "aggregate the rows before they become a changelog, or in the sink `postgres_aggregate`"


def event_times_can_be_read(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        event_time, schema = node.options.event_time, schemas.get(node.name)
        if event_time is None:
            continue
        if node.kind == "sink":
            yield Diagnostic(
                "MS006",
                f"sink `{node.name}` takes no `event_time`",
                node.place("event_time"),
                help="declare it on its input",
                node=node.name,
            )
        elif schema is not None and event_time.column not in schema.names:
            message = f"event time `{event_time.column}` is not a column of `{node.name}`"
            yield Diagnostic(
                "MS024", message, node.place("event_time", "column"), help=nearest(event_time.column, schema.names), node=node.name
            )
        elif schema is not None and (reason := event_time.fits(schema.field(event_time.column).type)):
            message = f"event time `{event_time.column}` of `{node.name}` {reason}"
            yield Diagnostic("MS008", message, node.place("event_time", "column"), node=node.name)


def stateful_nodes_have_event_time(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.transforms:
        if node.component.needs_event_time:
            for name in dict.fromkeys(missing for parent in node.inputs for missing in _nodes_without_time(topology, parent)):
                help_ = f"add `event_time: {{column: {_time_column(schemas.get(name))}, watermark: 10s}}` to `{name}`"
                message = f"`{node.name}` uses event time, and the rows of `{name}` have none"
                yield Diagnostic("MS037", message, node.span, help=help_, node=node.name, cause=name)


def state_is_not_over_changelogs(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        if not node.stateful or _is_incremental(node):
            continue
        updating = [above.name for above in topology.up_to(node.name)[:-1] if _updates(above)]
        for name in node.inputs:
            schema = schemas.get(name)
            if updating or (schema is not None and any(op in schema.names for op in OPS)):
                message = f"`{node.name}` keeps state over the changelog `{updating[0] if updating else name}`, which is not supported yet"
                yield Diagnostic("MS030", message, node.span, help=_AGGREGATED, node=node.name)
                break


def totals_are_over_rows(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """Spark supports no running totals over another stateful operator."""
    for node in topology.nodes:
        above = [parent for parent in topology.up_to(node.name)[:-1] if parent.stateful] if _updates(node) else []
        above = [parent for parent in above if not _is_incremental(parent)]
        if above and not any(_updates(parent) for parent in above):
            message = f"`{node.name}` keeps running totals over `{above[-1].name}`, which keeps state itself: that is not supported yet"
            help_ = "aggregate by window (`type: window`, or `GROUP BY window(…)`), or write the rows of the first node and read them again"
            yield Diagnostic("MS030", message, node.span, help=help_, node=node.name)


def final_results_have_an_end(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    """A result that is returned once needs inputs that end."""
    for node in topology.transforms:
        endless = [above.name for above in topology.up_to(node.name) if isinstance(above, SourceNode) and not above.component.bounded]
        if node.component.final and endless:
            message = f"`{node.name}` returns its result when its inputs have ended, and `{endless[0]}` never ends"
            help_ = f"make `{endless[0]}` bounded (`mode: {{type: bounded}}`), or remove `emit` to receive the changes of the result"
            yield Diagnostic("MS179", message, node.place("emit"), help=help_, node=node.name, cause=endless[0])


def finished_nodes_come_last(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        above = topology.up_to(node.name)[:-1] if node.stateful or len(node.inputs) > 1 else ()
        for parent in above if not _is_incremental(node) else ():
            if isinstance(parent, TransformNode) and parent.has_tail and not parent.component.incremental:
                message = f"`{node.name}` cannot read `{parent.name}`, whose results are made epoch by epoch"
                yield Diagnostic(
                    "MS036",
                    message,
                    node.span,
                    help="put both steps into one query, or write the results and read them again",
                    node=node.name,
                )
                break


def only_stateful_nodes_have_late_rows(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        unknown = isinstance(node.component, NamesInputs) and not node.component.readable
        if isinstance(node.component, Windowed) and not node.component.waits and not unknown:
            for option in ("late", "allowed_lateness"):
                if getattr(node.component, option) is not None:
                    message = f"`{node.name}` waits for nothing, so no row can be late"
                    yield Diagnostic("MS006", message, node.place(option), help=f"remove `{option}`", node=node.name)


def only_incremental_nodes_have_a_ttl(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.transforms:
        if not isinstance(node.component, Expiring) or node.component.ttl is None:
            continue
        above = [each.name for each in topology.up_to(node.name)[:-1] if _is_incremental(each) or _updates(each) or _has_tail(each)]
        if not node.component.incremental:
            message = f"`{node.name}` is not incremental, so it keeps no rows that `ttl` could remove"
            help_ = "remove `ttl`, or make the query incremental with `emit: changes`; docs/sql.md says which nodes are incremental"
            yield Diagnostic("MS006", message, node.place("ttl"), help=help_, node=node.name)
        elif above:
            message = f"`ttl` of `{node.name}` would apply to rows of `{above[0]}`, which are kept up to date themselves"
            yield Diagnostic("MS030", message, node.place("ttl"), help=f"set `ttl` on `{above[0]}`", node=node.name)


def _nodes_without_time(topology: Topology, name: str) -> list[str]:
    """The nodes without event time on the paths to a node: the first node of each path."""
    node = topology.by_name.get(name)
    if node is None or node.options.event_time:
        return []
    if node.kind == "source" or node.stateful:
        return [name]
    return [missing for parent in node.inputs for missing in _nodes_without_time(topology, parent)]


def _time_column(schema: pa.Schema | None) -> str:
    """The first column that could be an event time."""
    return next((field.name for field in schema or () if pa.types.is_timestamp(field.type)), "COLUMN")


def _updates(node: AnyNode) -> bool:
    return isinstance(node, TransformNode) and node.stateful and node.component.output_mode == "update"


def _is_incremental(node: AnyNode) -> bool:
    return isinstance(node, TransformNode) and node.component.incremental


def _has_tail(node: AnyNode) -> bool:
    return isinstance(node, TransformNode) and node.has_tail
