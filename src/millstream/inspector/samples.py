"""Which nodes can be watched, and the columns of their rows; what is known of it without Spark."""

from __future__ import annotations

import json

import pyarrow as pa

from millstream.checkpoint.layout import Checkpoint
from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.nodes import AnyNode, SinkNode
from millstream.plan.schemas import propagate
from millstream.plan.settings import RealTime
from millstream.plan.topology import Topology


def require_samples(topology: Topology, name: str) -> None:
    """Refuse a node whose rows cannot be sampled. The engine knows more, and may refuse others."""
    if isinstance(topology.settings.trigger, RealTime):
        message = f"`{topology.name}` runs in real-time mode: no epoch ends at which rows could be sampled"
        raise RunError(Diagnostic("MS189", message, help="look at what its sink writes"))
    plans = cut(topology)
    if any(plan.is_handed_over(name) for plan in plans):
        return
    near = ", ".join(f"`{each}`" for each in sorted({node.name for plan in plans for node in plan.nodes if plan.is_handed_over(node.name)}))
    plan = next((plan for plan in plans if any(node.name == name for node in plan.streamed)), None)
    why = _why_not_again(name, plan) if plan is not None else _why_never(topology.node(name))
    if why:
        raise RunError(Diagnostic("MS189", f"the rows of `{name}` cannot be shown while the pipeline runs: {why}", help=f"try {near}"))


def known_schemas(topology: Topology, checkpoint: Checkpoint) -> dict[str, pa.Schema | None]:
    """The columns of each node; those that a source found in its data are pinned in the checkpoint."""
    pinned = {node.name: checkpoint.node(node.name).read("schema.json") for node in topology.sources if node.component.output() is None}
    found = {name: types.schema(json.loads(text)) for name, text in pinned.items() if text is not None}
    return propagate(topology, found)


def _why_never(node: AnyNode) -> str:
    if isinstance(node, SinkNode):
        place = f" (`{node.component.address_text}`)" if node.component.address_text else ""
        return f"it receives dead letters, which are in its target{place}"
    return "it is no part of a query"


def _why_not_again(name: str, plan: QueryPlan) -> str:
    """Why the rows of a node above the end of the streaming plan cannot be read again."""
    for node in plan.steps_to(name):
        if node.stateful:
            return f"`{node.name}` keeps state, and Spark computes it together with the nodes below it"
        if not node.component.deterministic:
            return f"`{node.name}` returns other rows each time, and Spark computes it together with the nodes below it"
    return ""
