"""Compares the stored plan of a query with the current one and decides whether its progress can be kept.

Every query stores its plan. Nodes at or above the root give the offsets and the state their meaning: if one of them changed, the run is
refused with the difference. Nodes below the root may change: a half-done epoch is finished with its own plan, and the new plan starts with
the next epoch.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from millstream.checkpoint.incremental import IncrementalState
from millstream.checkpoint.layout import OWN, Checkpoint, QueryCheckpoint
from millstream.errors import Diagnostic, RunError
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.document import from_document, functions_of, node_document, to_document
from millstream.plan.nodes import AnyNode, SinkNode, make_node
from millstream.plan.topology import Topology
from millstream.rules.functions import calls_of
from millstream.sql.check.sameness import meaning_of
from millstream.units import size_of

_ALWAYS = {"on_error", "primary_key", "functions", "late", "allowed_lateness"}
"""Options that do not affect state."""
_COSMETIC = {"description", "telemetry"}
_WIDEST = 200


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the stored plan and this one."""

    node: str
    text: str
    breaking: bool
    """Whether progress must be reset."""


def changes(topology: Topology, plan: QueryPlan, checkpoint: Checkpoint) -> list[Change]:
    """The differences between a query and the plan in its checkpoint; empty when there is none."""
    stored = _stored_plans(checkpoint, plan.name)
    return _compare(stored, plan) if stored and _has_begun(checkpoint, plan.name) else []


def _has_begun(checkpoint: Checkpoint, query: str) -> bool:
    """Whether progress depends on the stored plan: an epoch was planned with it, or its bounded input ended without one."""
    return checkpoint.query(query).last_planned() >= 0 or checkpoint.finished_at(query) is not None


def _compare(stored: Any, plan: QueryPlan) -> list[Change]:
    old, new = stored["plans"][-1]["nodes"], _nodes(plan)
    above = {node.name for node in plan.above} | set(stored["above"])
    return [
        Change(name, text, name in above and breaking)
        for name in dict.fromkeys([*old, *new])
        for text, breaking in _differences(name, old.get(name), new.get(name), plan)
    ]


def admit(topology: Topology, plan: QueryPlan, checkpoint: Checkpoint, accept_change: bool) -> PlanHistory:
    """Let the query start with this plan, or refuse it with the reason."""
    _forget_unbegun(topology, plan, checkpoint)
    found = changes(topology, plan, checkpoint)
    breaking = [change for change in found if change.breaking]
    if breaking:
        raise RunError(_refusal(plan, breaking, checkpoint))
    history = PlanHistory(topology, plan, checkpoint, checkpoint.query(plan.name))
    history.append(found, accept_change)
    return history


def _forget_unbegun(topology: Topology, plan: QueryPlan, checkpoint: Checkpoint) -> None:
    """Remove the files of a query without a planned epoch: it has no progress that depends on its plan. Files that it and its changed
    nodes stored are removed, except those that another begun query reads too. The end of a bounded input is removed as well: nothing of
    it was read. (A continuous source keeps its start: `latest` means the first start.)
    """
    stored = _stored_plans(checkpoint, plan.name)
    if not stored or _has_begun(checkpoint, plan.name):
        return
    changed = {change.node for change in _compare(stored, plan)}
    if plan.bounded:
        changed |= {node.name for node in plan.sources if node.component.rereads}
    if changed:
        begun = [other for other in cut(topology) if _has_begun(checkpoint, other.name)]
        shared = {node.name for other in begun for node in other.nodes}
        checkpoint.reset(plan.name, sorted(changed - shared))


class PlanHistory:
    """The plans of a query, by epoch."""

    def __init__(self, topology: Topology, plan: QueryPlan, checkpoint: Checkpoint, query: QueryCheckpoint) -> None:
        self._topology, self._plan, self._checkpoint, self._query = topology, plan, checkpoint, query
        self._since = 0
        self._earlier: QueryPlan | None = None

    @property
    def plan(self) -> QueryPlan:
        """The plan of this run. While an epoch of an earlier plan is unfinished, both plans must start from the same root."""
        return self._plan if self._earlier is None else replace(self._plan, fuses_below_root=False)

    def plan_for(self, epoch: int) -> QueryPlan:
        return self._earlier if self._earlier is not None and epoch < self._since else self.plan

    def all_sinks(self) -> tuple[SinkNode, ...]:
        """The sinks of both plans. A sink that both have is in it twice: its options may differ."""
        return (*(self._earlier.sinks if self._earlier is not None else ()), *self._plan.sinks)

    def sinks(self) -> tuple[SinkNode, ...]:
        """The sinks of this plan and of the plan of a half-done epoch."""
        earlier = self._earlier.sinks if self._earlier is not None else ()
        return tuple({node.name: node for node in (*earlier, *self._plan.sinks)}.values())

    def differs(self, epochs: range, sink: str) -> str:
        """Why repeated epochs would have other rows for a sink; empty when they would have the same."""
        plans, now = _stored_plans(self._checkpoint, self._plan.name)["plans"], _nodes(self._plan)
        if plans[0]["from"] > epochs[0]:
            return f"the plan of epoch {epochs[0]} is not stored any more: it changed at epoch {plans[0]['from']}"
        if sink not in now:
            return f"sink `{sink}` is no longer in the pipeline"
        steps = {name: _meanings(now[name]) for name in (node.name for node in self._plan.nodes)}
        for plan, after in zip(plans, [*plans[1:], None], strict=True):
            past = after is not None and after["from"] <= epochs[0]
            then = {name: _meanings(plan["nodes"].get(name)) for name in steps}
            if not past and plan["from"] <= epochs[-1] and (then != steps or plan["nodes"].get(sink, {}).get("from") != now[sink]["from"]):
                return f"the plan changed since: epochs from {plan['from']} on were computed with another plan"
        return ""

    def append(self, found: list[Change], accept_change: bool) -> None:
        stored = _stored_plans(self._checkpoint, self._plan.name)
        if stored is None:
            self._write([self._entry(self._query.last_committed() + 1)])
            return
        planned, committed, last = self._query.last_planned(), self._query.last_committed(), stored["plans"][-1]
        begun = next((plan for plan in reversed(stored["plans"]) if plan["from"] <= planned), last)
        self._since = last["from"]
        if planned > committed and (found or begun is not last):  # a run that changed the plan may have ended before its epoch
            self._finish_with(begun, planned, accept_change)
        if found:
            self._since = planned + 1
            self._write([begun, self._entry(self._since)])

    def _finish_with(self, last: dict[str, Any], epoch: int, accept_change: bool) -> None:
        if last["document"] is not None:
            old = from_document(last["document"], self._topology.directory, {type(node.component) for node in self._topology.nodes})
            adjusted = tuple(_with_adjustable_options(node, self._topology) for node in old.nodes)
            old = replace(old, nodes=(*adjusted, *_new_dead_letter_sinks(adjusted, self._topology)))
            self._earlier = next((replace(plan, fuses_below_root=False) for plan in cut(old) if plan.name == self._plan.name), None)
            self._refuse_other_rejects(epoch)
            if accept_change and self._earlier is not None:
                self._earlier = replace(self._earlier, functions=self._plan.functions)
            self._refuse_other_functions(epoch)
        elif not accept_change:
            message = f"epoch {epoch} of query `{self._plan.name}` is half done, and the plan that began it could not be stored"
            raise RunError(Diagnostic("MS054", message, help="`--accept-change` finishes it with the current plan"))

    def _refuse_other_rejects(self, epoch: int) -> None:
        """Both plans receive the same frame, so they must treat rejects in the same way."""
        earlier = {node.name: node.on_error for node in self._earlier.above} if self._earlier is not None else {}
        for node in self._plan.above:
            if earlier.get(node.name, node.on_error) != node.on_error:
                message = f"`on_error` of `{node.name}` cannot change while epoch {epoch} is half done"
                raise RunError(Diagnostic("MS053", message, node.place("on_error"), help="run once with the old value, then change it"))

    def _refuse_other_functions(self, epoch: int) -> None:
        """Functions above the root compute the frame that both plans receive."""
        earlier = {used.name: used for used in self._earlier.functions} if self._earlier is not None else {}
        for node in self._plan.above:
            for used in calls_of(node, self._plan.functions):
                if earlier.get(used.name, used) != used:
                    message = f"function `{used.name}`, which `{node.name}` calls, cannot change while epoch {epoch} is half done"
                    help_ = "run once with the old one, then change it; or `--accept-change` finishes the epoch with the new one"
                    raise RunError(Diagnostic("MS053", message, used.span, help=help_))

    def _entry(self, since: int) -> dict[str, Any]:
        refs = [ref for node in self._topology.nodes for ref in functions_of(node.component)]
        storable = all(ref.named for ref in [*refs, *(used.options.function for used in self._topology.functions)])
        return {"from": since, "nodes": _nodes(self._plan), "document": to_document(self._topology) if storable else None}

    def _write(self, plans: list[dict[str, Any]]) -> None:
        above = [node.name for node in self._plan.above]
        self._checkpoint.storage.put(_path(self._plan.name), json.dumps({"above": above, "plans": plans}, indent=1, default=str).encode())


def _stored_plans(checkpoint: Checkpoint, query: str) -> Any:
    return checkpoint.read_json(_path(query))


def _path(query: str) -> str:
    return f"{OWN}/plans/{query}.json"


def _nodes(plan: QueryPlan) -> dict[str, Any]:
    """Every node of the query as plain data."""
    documents = {node.name: _document(node, plan) for node in (*plan.nodes, *plan.sinks)}
    return {
        name: {k: v for k, v in document.items() if k not in _COSMETIC}
        for name, document in json.loads(json.dumps(documents, default=str)).items()
    }


def _document(node: AnyNode, plan: QueryPlan) -> dict[str, Any]:
    """A node as its YAML block, with the functions that it calls."""
    document = {**node_document(node), "from": list(node.inputs)}
    called = {used.name: used.document() for used in calls_of(node, plan.functions)}
    return {**document, "functions": called} if called else document


def _differences(name: str, old: Any, new: Any, plan: QueryPlan) -> Iterator[tuple[str, bool]]:
    if old is None:
        yield f"`{name}` is new", True
    elif new is None:
        yield f"`{name}` is gone", True
    else:
        adjustable = _adjustable(plan, name)
        for key in dict.fromkeys([*old, *new]):
            if _meaning(key, old.get(key)) != _meaning(key, new.get(key)):
                breaking = _is_breaking(key, old.get(key), new.get(key), adjustable)
                yield _difference(name, key, old.get(key), new.get(key)), breaking


def _meaning(key: str, value: Any) -> Any:
    """An option as far as it counts: texts of one query are equal."""
    return meaning_of(value) if key == "sql" and isinstance(value, str) else value


def _meanings(document: dict[str, Any] | None) -> dict[str, Any]:
    return {key: _meaning(key, value) for key, value in (document or {}).items()}


def _is_breaking(key: str, old: Any, new: Any, adjustable: frozenset[str]) -> bool:
    """Whether state and offsets lose their meaning. Rows that are stored with the time of their arrival can expire at another age."""
    if key == "event_time":
        return _reads_otherwise(old, new)
    return not (old and new) if key == "ttl" else key not in adjustable


def _reads_otherwise(old: Any, new: Any) -> bool:
    """Whether event times have another meaning; the watermark's delay may change."""
    return any((old or {}).get(key) != (new or {}).get(key) for key in ("column", "unit", "format"))


def _adjustable(plan: QueryPlan, name: str) -> frozenset[str]:
    nodes: list[AnyNode] = [node for node in (*plan.nodes, *plan.sinks) if node.name == name]
    return (nodes[0].component.adjustable if nodes else frozenset()) | _ALWAYS


def _with_adjustable_options(node: AnyNode, topology: Topology) -> AnyNode:
    """A node of an earlier plan with the current values of options that may always change: an address, a limit that was too low."""
    current = next((other for other in topology.nodes if other.name == node.name), None)
    if current is None or type(current.component) is not type(node.component):
        return node
    now = current.component
    changed = {name: getattr(now, name) for name in now.adjustable if name in type(now).model_fields}
    # a sink that has committed nothing may change `on_error` or get a missing key: otherwise it could never continue
    now_options = {"on_error": current.on_error, "primary_key": current.options.primary_key}
    options = node.options.model_copy(update=now_options) if node.kind == "sink" else node.options
    return make_node(node.name, node.component.model_copy(update=changed), node.inputs, options, node.span, node.spans)


def _new_dead_letter_sinks(nodes: tuple[AnyNode, ...], topology: Topology) -> tuple[AnyNode, ...]:
    """Dead-letter sinks of the current plan that the earlier plan did not have."""
    known, wanted = {node.name for node in nodes}, {node.dead_letter for node in nodes}
    return tuple(sink for sink in topology.sinks if sink.name in wanted - known and not sink.inputs)


def _difference(name: str, key: str, old: Any, new: Any) -> str:
    """What changed: the lines of SQL texts, both values of anything else."""
    if key == "sql" and isinstance(old, str) and isinstance(new, str):
        lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "", "", lineterm="", n=2))[2:]
        return "\n".join([f"`{name}`: `{key}` changed", *(f"    {_shorten(line)}" for line in lines)])
    before, after = _shorten_both(old, new)
    return f"`{name}`: `{key}` was {before}, is {after}"


def _shorten_both(old: Any, new: Any) -> tuple[str, str]:
    """Both values; long ones are cut around the first difference."""
    texts = (str(old), str(new))
    first = next((at for at, (left, right) in enumerate(zip(*texts, strict=False)) if left != right), min(map(len, texts)))
    start = max(0, first - _WIDEST // 4) if max(map(len, texts)) > _WIDEST else 0
    before, after = (("…" if start else "") + _shorten(text[start:]) for text in texts)
    return "not set" if old is None else f"`{before}`", "not set" if new is None else f"`{after}`"


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"


def cost_of_reset(plan: QueryPlan, checkpoint: Checkpoint) -> str:
    """What `--reset` of a query does, as a clause."""
    sources, sinks = (", ".join(f"`{node.name}`" for node in nodes) for nodes in (plan.sources, plan.sinks))
    with suppress(RunError):  # files that cannot be read have no size
        query, kept = checkpoint.query(plan.name), IncrementalState(checkpoint.incremental(plan.name))
        entries = kept.path_to(query.last_committed()) if kept.epochs("log") else []
        rows = sum(part.kept for entry in entries for part in entry.parts)
        size = sum(entry.bytes for entry in entries) + query.storage.size("state")
        dropped = f"drops {f'{rows} rows of ' if entries else ''}state ({size_of(size)}), " if size else ""
        return f"`--reset {plan.name}` {dropped}reads {sources} from the start again, and {sinks} will receive rows again"
    return f"`--reset {plan.name}` reads {sources} from the start again, and {sinks} will receive rows again"


def _refusal(plan: QueryPlan, breaking: list[Change], checkpoint: Checkpoint) -> Diagnostic:
    detail = "\n".join(f"- {change.text}" for change in breaking)
    help_ = f"undo the change; or {cost_of_reset(plan, checkpoint)}"
    return Diagnostic(
        "MS053",
        f"query `{plan.name}` cannot continue: the plan changed at or above its root",
        plan.root.span,
        detail=detail,
        help=help_,
    )
