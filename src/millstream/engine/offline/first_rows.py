"""The first rows of a node, read from its real sources: nothing else is touched.

The nodes above it run with a checkpoint in a temporary folder, and every sink is replaced by one that keeps some rows in memory. Sources
are not told what was read, so no consumer group moves and no message is deleted.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pydantic import PrivateAttr

from millstream.errors import Diagnostic, RunError, SpecError, nearest
from millstream.observe.facts import Snapshot
from millstream.plan.components import Epoch, NamesInputs, NodeContext, Sink, SinkRun, Staged
from millstream.plan.lookup_tables import fills
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, TransformNode, make_node
from millstream.plan.run_options import Engine, RunOptions
from millstream.plan.settings import Continuous, StoreSettings
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT = "rows of the preview"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Rows of a node."""

    node: str
    rows: pa.Table
    is_all: bool
    """Whether the input ended before there were as many rows as asked for."""


def first_rows(engine: Engine, topology: Topology, name: str | None, count: int, seconds: float, tell: Callable[[str], None]) -> FirstRows:
    """The rows of a node, or of the input of the first sink; those that have arrived when the time is over."""
    node = _chosen(topology, name)
    kept = _KeptRows()
    part = _part_above(topology, node, kept, count)
    stop = threading.Event()
    deadline = time.monotonic() + seconds

    def watch(snapshot: Snapshot) -> None:
        if kept.count >= count or (snapshot.state == "running" and time.monotonic() > deadline):
            stop.set()

    with tempfile.TemporaryDirectory(prefix="millstream-preview-") as folder:
        changes = {"checkpoint": folder, "trigger": Continuous(), "store": StoreSettings()}
        settings = topology.settings.model_copy(update=changes)
        options = RunOptions(watch=watch, tell=tell, stop=stop, checked=True, flags=True, private=True)
        report = engine.run(replace(part, settings=settings), options)
    return FirstRows(node.name, kept.table(count), report.state == "done" and kept.count < count)


class _KeptRows:
    """Rows in the order of their epochs."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self.count = 0

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)
        self.count += table.num_rows

    def table(self, count: int) -> pa.Table:
        return pa.concat_tables(self._tables, promote_options="permissive").slice(0, count) if self._tables else pa.table({})


class _KeepingSink(Sink):
    """Keeps the first rows of each epoch."""

    type: ClassVar[str] = "preview"
    summary: ClassVar[str] = "Keep some rows, for a preview."
    commit_method: ClassVar[str] = "rows are kept in the process"
    example: ClassVar[str] = ""

    _kept: _KeptRows = PrivateAttr(default_factory=_KeptRows)
    _count: int = PrivateAttr(default=0)
    _whole: bool = PrivateAttr(default=False)

    @property
    def ledger_lasts(self) -> bool:
        return False

    def open(self, context: NodeContext) -> _KeepingRun:
        return _KeepingRun(context, self._kept, self._count, self._whole)


class _KeepingRun(SinkRun[pa.Table]):
    """Stages a part of an epoch's rows. With state Spark must compute the `whole` epoch."""

    def __init__(self, context: NodeContext, kept: _KeptRows, count: int, whole: bool) -> None:
        super().__init__(context)
        self._kept, self._count, self._whole = kept, count, whole

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[pa.Table]:
        if not self._whole:
            return Staged(None, frame.limit(self._count).toArrow())
        rows = frame.persist()
        try:
            rows.write.format("noop").mode("append").save()
            return Staged(None, rows.limit(self._count).toArrow())
        finally:
            rows.unpersist()

    def commit(self, staged: Staged[pa.Table], epoch: Epoch) -> None:
        self._kept.add(staged.work)


def _chosen(topology: Topology, name: str | None) -> AnyNode:
    if name is None:
        sink = next(node for node in topology.nodes if isinstance(node, SinkNode) and node.inputs)
        return topology.node(sink.inputs[0])
    node = topology.by_name.get(name)
    if node is None:
        raise SpecError(Diagnostic("MS189", f"`{topology.name}` has no node `{name}`", help=nearest(name, topology.by_name)))
    if not isinstance(node, SinkNode):
        return node
    if not node.inputs:
        senders = ", ".join(f"`{each.name}`" for each in topology.nodes if node.name in each.dead_letter_sinks)
        message = f"`{node.name}` receives dead letters, of which there may be none: they cannot be previewed"
        raise RunError(Diagnostic("MS190", message, node.span, help=f"look at the rows of {senders}", node=node.name))
    return topology.node(node.inputs[0])


def _part_above(topology: Topology, node: AnyNode, kept: _KeptRows, count: int) -> Topology:
    """The nodes that a node needs, with a sink for its rows, and with sinks that drop dead letters."""
    names = [each.name for each in topology.up_to(node.name)]
    tables = {table for name in names for table in _lookups(topology.node(name))}
    names += [each.name for table in tables for each in topology.up_to(table)]
    chosen = [each for each in topology.nodes if each.name in set(names)]
    for each in chosen:
        _require_harmless(each)
    letters = {letter for each in chosen for letter in each.dead_letter_sinks}
    whole = any(each.stateful for each in chosen if not isinstance(each, SinkNode))
    ends: list[AnyNode] = [make_node(_KEPT, _keeping(kept, count, whole), (node.name,))]
    ends += [make_node(letter, _keeping(_KeptRows(), count, whole)) for letter in sorted(letters)]
    return replace(topology, nodes=(*chosen, *ends))


def _keeping(kept: _KeptRows, count: int, whole: bool) -> _KeepingSink:
    made = _KeepingSink()
    made._kept, made._count, made._whole = kept, count, whole
    return made


def _lookups(node: AnyNode) -> tuple[str, ...]:
    return tuple(node.component.lookup_names) if isinstance(node.component, NamesInputs) else ()


def _require_harmless(node: AnyNode) -> None:
    """Refuse nodes that change something outside when they run."""
    if isinstance(node, TransformNode) and fills(node):
        what = "it would be filled"
    elif isinstance(node, SourceNode) and not node.component.rereads:
        what = "reading it changes what is there for others"
    else:
        return
    message = f"a preview cannot use `{node.name}`: {what}"
    raise RunError(Diagnostic("MS190", message, node.span, help="look at a running pipeline with `millstream tap`", node=node.name))
