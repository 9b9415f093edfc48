"""The DataFrames of one epoch. Nodes below the root are built on demand, and cached where two readers would compute them twice; all are
released at the end.

A node with several readers is persisted when an expensive step is above it (Python, parsing CSV or JSON). A cheap node is computed again,
which is faster.
A node whose rows vary (`rand()`, a function that reads a clock) is staged once in the checkpoint when several sinks read it. Persisting is
not enough: an evicted block would be computed again. The rows of a sink whose target decides which of them are rejects are staged too: the
decision and the dead letters must be the same when the epoch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.checkpoint.layout import OffsetEntry
from millstream.engine.epoch.counts import Tally, count_rejects
from millstream.engine.epoch.last_per_key import last_per_key
from millstream.engine.epoch.staging import stage_once
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.lowering.nodes import REJECT_TYPE, Lowering, accepted_rows, finish, named_reject, visible
from millstream.engine.time.late_rows import Lateness
from millstream.engine.time.operators import Operators
from millstream.plan.components import REJECT, KeepsLastPerKey, RejectsRows
from millstream.plan.cutting import QueryPlan
from millstream.plan.document import functions_of
from millstream.plan.nodes import AnyNode, SinkNode
from millstream.rules.functions import calls_of


class EpochFrames:
    """Frames by node name, for one epoch of one query."""

    def __init__(
        self,
        plan: QueryPlan,
        root: DataFrame,
        lowering: Lowering,
        epoch: int,
        entry: OffsetEntry,
        clock: str,
        operators: Callable[[], Operators] | None = None,
        accepts: bool = False,
        maintenance: Maintenance | None = None,
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self._plan, self._lowering, self._epoch, self._entry, self._clock = plan, lowering, epoch, entry, clock
        self._find_operators, self._source, self._accepts, self._maintenance = operators, root, accepts, maintenance
        self._spark, self._stream_end, self.watched = root.sparkSession, plan.stream_end.name, watched
        self._full: dict[str, DataFrame] = {}
        self._persisted: list[DataFrame] = []
        self._materialised: set[str] = set()
        self._held: set[str] = set()
        """Nodes whose rows are persisted, staged, or kept by the state of their query."""
        self._tallies: dict[str, Tally] = {}
        self.scans = 0
        """How often the root has been read."""
        self.read_in_part = False
        """Whether it was read once more for its rejects alone: Spark leaves out branches without any, so reads of sources are unknown."""
        self.collapsed: set[str] = set()
        """Sinks that receive only the last row of each key. Their counts do not apply to the node above."""
        self._adopt_root(root)

    def rows(self, name: str, reader: AnyNode | None = None) -> DataFrame:
        """The valid rows of a node, as one reader sees them."""
        frame, node = self._frame(name), self._plan.node(name)
        return visible(accepted_rows(frame) if self._rejects(node) else frame, node, reader)

    @cached_property
    def operators(self) -> Operators | None:
        """Spark's operators, for queries that use event time. Read it only after the root has been read."""
        return self._find_operators() if self._find_operators else None

    @cached_property
    def late(self) -> Lateness | None:
        """The late rows, for queries that can have any."""
        return Lateness(self._plan, self._source, self.operators) if self.operators and self._plan.reporting_late else None

    def run(self) -> None:
        """Run the streaming plan and discard its rows: Spark must commit the state of every epoch."""
        self.rows(self._plan.stream_end.name).write.format("noop").mode("append").save()

    def for_sink(self, sink: SinkNode) -> DataFrame:
        """The rows that a sink receives in this epoch."""
        rejecting, late_nodes = self._plan.nodes_rejecting_to(sink), self._plan.late_rows_of(sink)
        if rejecting or late_nodes:
            rows = self._dead_letters(rejecting, late_nodes)
            return accepted_rows(self._with_rejects(sink, rows)) if sink.isolates else rows
        name = sink.name if sink.isolates else sink.inputs[0]
        self._count(name)
        if sink.isolates:
            return self.rows(name)
        return self._last_rows(sink, self._lowering.for_sink(sink, self._plan.node(name), self.rows(name)))

    def _last_rows(self, sink: SinkNode, rows: DataFrame) -> DataFrame:
        """The last row of each key, for sinks that want only that row."""
        run = self._lowering.sink(sink)
        key = run.collapse_key(rows.columns) if isinstance(run, KeepsLastPerKey) else ()
        if not key:
            return rows
        self.collapsed.add(sink.name)
        return last_per_key(rows, key)

    def count_reads(self, sink: SinkNode, reads: int) -> None:
        """Count the reads of a sink's rows that came after the first."""
        for _ in range(reads - 1):
            self._count(sink.name if sink.isolates else sink.inputs[0])

    def for_table(self, table: AnyNode) -> DataFrame:
        """The rows that a dynamic table receives in this epoch."""
        rows = self._lowering.untraced(self.rows(table.name))
        self._count(table.name)
        return rows

    def repeatable(self, sink: SinkNode) -> bool:
        """Whether a second computation gives a sink the same rows: no state, no random values, and only Spark's own code."""
        return bool(sink.inputs) and not self._plan.nodes_rejecting_to(sink) and self._is_repeatable(self._plan.node(sink.inputs[0]))

    @property
    def session(self) -> SparkSession:
        """The session of the epoch."""
        return self._spark

    def computes(self, name: str) -> bool:
        """Whether the epoch computed a node. It did not if no sink needed it."""
        return name in self._full

    def holds(self, name: str) -> bool:
        """Whether the rows of a node are there until `release`: its own, or those of a node above from which they follow."""
        return any(step.name in self._held for step in self._path(self._plan.node(name)))

    def over(self, root: DataFrame) -> EpochFrames:
        """The frames of this epoch above other rows of its root."""
        return EpochFrames(self._plan, root, self._lowering, self._epoch, self._entry, self._clock)

    def count_rejects(self) -> dict[str, int]:
        """Node → rejects that no sink counts: those of nodes that drop them or share a dead-letter sink. Call it after the sinks have
        read their rows.
        """
        counts: dict[str, int] = {}
        for holder, names in self._counted.items():
            found = self._tallies[holder].read() if holder in self._tallies else None
            if found is None:
                found = count_rejects(self._rejected_rows(self._plan.node(holder)), names)
                self.read_in_part = self.read_in_part or (self._plan.tagged and self._stream_end not in self._materialised)
            counts |= found
        return counts

    @cached_property
    def _counted(self) -> dict[str, list[str]]:
        """Frame → the nodes whose rejects are counted in it"""
        found: dict[str, list[str]] = {}
        for node in self._plan.counted:
            found.setdefault(self._holder(node), []).append(node.name)
        return found

    def _observe(self, name: str, frame: DataFrame) -> DataFrame:
        if name not in self._counted:
            return frame
        self._tallies[name] = Tally(self._counted[name])
        return self._tallies[name].observe(frame)

    def _rejected_rows(self, node: AnyNode) -> DataFrame:
        """The frame that holds a node's rejects; counts one more reader of it."""
        holder = self._holder(node)
        frame = self._frame(holder)
        self._count(holder)
        return frame

    def release(self) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def _adopt_root(self, root: DataFrame) -> None:
        node = self._plan.stream_end
        if self._maintenance is not None:
            self._full[node.name] = self._observe(node.name, self._maintained(self._maintenance, root))
            self.scans = 1
            self._materialised.add(node.name)
            self._held.add(node.name)
            return
        root = finish(node, root, self._lowering, self._clock)
        if node.isolates and not self._plan.tagged:
            root = _with_node_name(root, node)
        self._full[node.name] = self._persist_or_stage(node, self._observe(node.name, root))

    def _maintained(self, maintenance: Maintenance, arrived: DataFrame) -> DataFrame:
        """The changes of an incremental root, and the rejects that arrived with its rows. The changes are held: several readers do not
        compute them twice.
        """
        epoch, digest, ends, time_ms = self._epoch, self._entry.digest, self._entry.flushes, self._entry.time_ms
        if self._plan.has_native_state and maintenance.is_written(epoch, digest):
            arrived.write.format("noop").mode("append").save()  # the changes are read back, and Spark's state still needs the epoch
        if not self._plan.tagged:
            return maintenance.step(arrived, epoch, digest, ends=ends, time_ms=time_ms)
        arrived = arrived.persist()
        self._persisted.append(arrived)
        changes = maintenance.step(accepted_rows(arrived), epoch, digest, ends=ends, time_ms=time_ms)
        rows = changes.withColumn(REJECT, F.lit(None).cast(REJECT_TYPE))
        return rows.unionByName(arrived.where(F.col(REJECT).isNotNull()).select(REJECT), allowMissingColumns=True)

    def _rejects(self, node: AnyNode) -> bool:
        """Whether a node's frame contains rejects. Asking Spark for the columns would cost milliseconds per epoch."""
        return node.isolates or (node.name == self._stream_end and self._plan.tagged)

    def _frame(self, name: str) -> DataFrame:
        if name not in self._full:
            node = self._plan.node(name)
            inputs = {parent: self.rows(parent, node) for parent in node.inputs}
            if isinstance(node, SinkNode):
                frame = self._with_rejects(node, self._lowering.for_sink(node, self._plan.node(node.inputs[0]), inputs[node.inputs[0]]))
            else:
                frame = self._lowering.lower(node, inputs, self._spark, self._clock)
            if node.isolates:
                frame = _with_node_name(frame, node)
            self._full[name] = self._persist_or_stage(node, self._observe(name, frame))
        return self._full[name]

    def _persist_or_stage(self, node: AnyNode, frame: DataFrame) -> DataFrame:
        readers = self._plan.readers(node.name)
        if self._target_rejects(node) or (readers > 1 and self._varies(node)):
            self._count(node.inputs[0] if node.name != self._stream_end else node.name)
            self._materialised.add(node.name)
            self._held.add(node.name)
            anew = self._accepts and self._target_rejects(node)
            return stage_once(frame, self._lowering.checkpoint, (self._plan.name, node.name), self._epoch, self._entry.digest, anew=anew)
        if (readers > 1 and self._is_expensive(node)) or (node.name in self.watched and self._must_hold(node)):
            frame = frame.persist()
            self._persisted.append(frame)
            self._held.add(node.name)
        return frame

    def _dead_letters(self, rejecting: tuple[AnyNode, ...], late_nodes: tuple[AnyNode, ...]) -> DataFrame:
        """Dead letters: the raw row, the node, the epoch, the error and the time."""
        late = [self.late.rejects(node) for node in late_nodes] if self.late else []
        parts = [rows for rows in late if rows is not None]
        for node in rejecting:
            parts.append(self._rejected_rows(node).where(F.col(f"{REJECT}.node") == node.name).select(REJECT))
        rejects = reduce(DataFrame.unionByName, parts) if parts else self._spark.createDataFrame([], f"{REJECT} {REJECT_TYPE}")
        return rejects.select(
            F.col(f"{REJECT}.node").alias("node"),
            F.lit(self._epoch).cast("long").alias("epoch"),
            F.col(f"{REJECT}.error").alias("error"),
            F.col(f"{REJECT}.raw").alias("raw"),
            F.timestamp_millis(F.lit(self._entry.time_ms)).alias("time"),
        )

    def _with_rejects(self, node: SinkNode, rows: DataFrame) -> DataFrame:
        """The rows that a sink receives; those that the target cannot take are marked as rejects."""
        run = self._lowering.sink(node)
        assert isinstance(run, RejectsRows)
        return run.with_rejects(self._last_rows(node, rows))

    def _target_rejects(self, node: AnyNode) -> bool:
        """Whether a sink's rejects go to a dead-letter sink and the target's contents decide which rows they are: that is decided once
        per epoch.
        """
        return isinstance(node, SinkNode) and node.component.target_rejects and node.isolates and bool(node.dead_letter)

    def _holder(self, node: AnyNode) -> str:
        """The frame that holds a node's rejects: its own, or the root's for nodes above the root."""
        return node.name if node in (*self._plan.below, *self._plan.sinks) else self._stream_end

    def _count(self, name: str) -> None:
        """Count one more execution of a node's frame, as a number of root reads."""
        path = [name]
        while path[-1] != self._stream_end:
            if path[-1] in self._materialised:
                return
            path.append(self._plan.node(path[-1]).inputs[0])
        if path[-1] in self._materialised:
            return
        self.scans += 1
        persisted = [step for step in path if any(self._full.get(step) is frame for frame in self._persisted)]
        self._materialised.update(persisted)

    def _path(self, node: AnyNode) -> list[AnyNode]:
        """The node and those above it, up to the one that Spark hands over."""
        path = [node]
        while path[-1].name != self._stream_end:
            path.append(self._plan.node(path[-1].inputs[0]))
        return path

    def _above(self, node: AnyNode) -> list[AnyNode]:
        """The node and all nodes that are computed for it in this epoch."""
        return [*self._path(node), *self._plan.streamed]

    def _is_expensive(self, node: AnyNode) -> bool:
        above = self._above(node)
        return self._plan.stateful or any(
            step.expensive or self._lowering.is_observed(step) or calls_of(step, self._plan.functions) for step in above
        )

    def _is_repeatable(self, node: AnyNode) -> bool:
        if self._plan.stateful:
            return False
        return not any(map(self._is_foreign, self._above(node))) and not self._varies(node)

    def _is_foreign(self, step: AnyNode) -> bool:
        """Whether a node runs code of somebody else: a script's too, since what its text keeps cannot be told for certain."""
        plugin = step.component.type == "script" or not type(step.component).__module__.startswith("millstream.")
        calls = functions_of(step.component) or calls_of(step, self._plan.functions)
        return plugin or bool(calls) or self._lowering.is_observed(step)

    def _must_hold(self, node: AnyNode) -> bool:
        """Whether a watched node's rows must be held. If they need not be, some of them are read again, which costs less."""
        return self._plan.tagged or bool(self._plan.filling) or not self._is_repeatable(node)

    def _varies(self, node: AnyNode) -> bool:
        """Whether this node varies by itself, and not only because of a node above that is already staged."""
        steps = [step for step in self._above(node) if step.name not in self._materialised]
        return any(map(self._lowering.varies, steps)) or any(
            used.name in self._lowering.varying for step in steps for used in calls_of(step, self._plan.functions)
        )


def _with_node_name(frame: DataFrame, node: AnyNode) -> DataFrame:
    """The rejects of a frame, each with the name of its node."""
    return frame.withColumn(REJECT, F.when(F.col(REJECT).isNotNull(), named_reject(node)))
