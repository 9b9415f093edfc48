"""The frames of one epoch: built below the root on demand, kept in memory where two readers would pay twice, released at the end.

A node with several readers is persisted when something above it is dear (Python, parsing CSV or JSON); a cheap one is computed again,
which is faster. A node that gives other rows each time (`rand()`, a function that reads a clock) is staged once in the checkpoint when
several sinks read it: persisting is no substitute, since an evicted block is computed anew. So are the rows of a sink whose target decides
which of them are bad: its verdict and the dead letters must be the same when the epoch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.checkpoint import OffsetEntry
from millstream.engine.collapsing import last_per_key
from millstream.engine.lateness import Lateness
from millstream.engine.lowering import REJECT_TYPE, Lowering, finished, good, visible
from millstream.engine.operators import Operators
from millstream.engine.staging import stage_once
from millstream.engine.tallies import Tally, count_bad
from millstream.plan.components import REJECT, Sink
from millstream.plan.cutting import QueryPlan
from millstream.plan.document import functions_of
from millstream.plan.function_rules import calls_of
from millstream.plan.nodes import Node


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
    ) -> None:
        self._plan, self._lowering, self._epoch, self._entry, self._clock = plan, lowering, epoch, entry, clock
        self._find_operators, self._source, self._accepts = operators, root, accepts
        self._spark, self._outlet = root.sparkSession, plan.outlet.name
        self._full: dict[str, DataFrame] = {}
        self._persisted: list[DataFrame] = []
        self._materialised: set[str] = set()
        self._tallies: dict[str, Tally] = {}
        self.scans = 0
        """How often the root has been read."""
        self.collapsed: set[str] = set()
        """Sinks that get the last row of each key only: their counts say nothing about the node above."""
        self._adopt_root(root)

    def rows(self, name: str, reader: Node | None = None) -> DataFrame:
        """The good rows of a node that a reader sees."""
        frame, node = self._frame(name), self._plan.node(name)
        return visible(good(frame) if self._rejects(node) else frame, node, reader)

    @cached_property
    def operators(self) -> Operators | None:
        """Spark's operators, for queries that go by event time. To be asked once the root has been read."""
        return self._find_operators() if self._find_operators else None

    @cached_property
    def late(self) -> Lateness | None:
        """The late rows, where there can be any."""
        return Lateness(self._plan, self._source, self.operators) if self.operators and self._plan.timely else None

    def run(self) -> None:
        """Read the root for nobody: a query with state must see every epoch."""
        self.rows(self._plan.outlet.name).write.format("noop").mode("append").save()

    def for_sink(self, sink: Node) -> DataFrame:
        """What a sink is to receive in this epoch."""
        rejecting, belated = self._plan.rejecting(sink), self._plan.belated(sink)
        if rejecting or belated:
            letters = self._letters(rejecting, belated)
            return good(self._judged(sink, letters)) if sink.isolates else letters
        name = sink.name if sink.isolates else sink.inputs[0]
        rows = self.rows(name)
        self._count(name)
        return rows if sink.isolates else self._collapsed(sink, rows)

    def _collapsed(self, sink: Node, rows: DataFrame) -> DataFrame:
        """The last row of each key, where the sink wants no more."""
        assert isinstance(sink.component, Sink)
        key = sink.component.collapses(rows.columns, self._lowering.context(sink, self._clock))
        if not key:
            return rows
        self.collapsed.add(sink.name)
        return last_per_key(rows, key)

    def for_table(self, table: Node) -> DataFrame:
        """What a dynamic table is filled with in this epoch."""
        rows = self.rows(table.name)
        self._count(table.name)
        return rows

    def repeatable(self, sink: Node) -> bool:
        """Whether a sink's rows come out the same when they are computed again: no state, no random values, and no code but Spark's own."""
        if self._plan.stateful or not sink.inputs or self._plan.rejecting(sink):
            return False
        node = self._plan.node(sink.inputs[0])
        foreign = [step for step in self._above(node) if functions_of(step.component) or calls_of(step, self._plan.functions)]
        return not foreign and not self._varies(node)

    def bad_rows(self) -> dict[str, int]:
        """Bad rows of nodes that drop them or share a sink for them, which no sink counts. To be asked when the sinks have read theirs."""
        counts: dict[str, int] = {}
        for holder, names in self._tallied.items():
            found = self._tallies[holder].read() if holder in self._tallies else None
            counts |= found if found is not None else count_bad(self._bad(self._plan.node(holder)), names)
        return counts

    @cached_property
    def _tallied(self) -> dict[str, list[str]]:
        """Frame → the nodes whose bad rows are counted in it"""
        found: dict[str, list[str]] = {}
        for node in self._plan.tallied:
            found.setdefault(self._holder(node), []).append(node.name)
        return found

    def _observed(self, name: str, frame: DataFrame) -> DataFrame:
        if name not in self._tallied:
            return frame
        self._tallies[name] = Tally(self._tallied[name])
        return self._tallies[name].observe(frame)

    def _bad(self, node: Node) -> DataFrame:
        """The frame that holds a node's bad rows, about to be read."""
        holder = self._holder(node)
        frame = self._frame(holder)
        self._count(holder)
        return frame

    def release(self) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def _adopt_root(self, root: DataFrame) -> None:
        node = self._plan.outlet
        root = finished(node, root, self._lowering, self._clock)
        if node.isolates and not self._plan.tagged:
            root = _owned(root, node)
        self._full[node.name] = self._kept(node, self._observed(node.name, root))

    def _rejects(self, node: Node) -> bool:
        """Whether a node's frame has bad rows among its rows. Asking Spark for the columns would cost milliseconds per epoch."""
        return node.isolates or (node.name == self._outlet and self._plan.tagged)

    def _frame(self, name: str) -> DataFrame:
        if name not in self._full:
            node = self._plan.node(name)
            inputs = {parent: self.rows(parent, node) for parent in node.inputs}
            judging = node.kind == "sink"
            frame = self._judged(node, inputs[node.inputs[0]]) if judging else self._lowering.lower(node, inputs, self._spark, self._clock)
            if node.isolates:
                frame = _owned(frame, node)
            self._full[name] = self._kept(node, self._observed(name, frame))
        return self._full[name]

    def _kept(self, node: Node, frame: DataFrame) -> DataFrame:
        readers = self._plan.readers(node.name)
        if self._judged_by_target(node) or (readers > 1 and self._varies(node)):
            self._count(node.inputs[0] if node.name != self._outlet else node.name)
            self._materialised.add(node.name)
            anew = self._accepts and self._judged_by_target(node)
            return stage_once(frame, self._lowering.checkpoint, (self._plan.name, node.name), self._epoch, self._entry.digest, anew=anew)
        if readers > 1 and self._dear(node):
            frame = frame.persist()
            self._persisted.append(frame)
        return frame

    def _letters(self, rejecting: tuple[Node, ...], belated: tuple[Node, ...]) -> DataFrame:
        """Dead letters: the raw row, the node, the epoch, the error and the time."""
        late = [self.late.rejects(node) for node in belated] if self.late else []
        parts = [rows for rows in late if rows is not None]
        for node in rejecting:
            parts.append(self._bad(node).where(F.col(f"{REJECT}.node") == node.name).select(REJECT))
        rejects = reduce(DataFrame.unionByName, parts) if parts else self._spark.createDataFrame([], f"{REJECT} {REJECT_TYPE}")
        return rejects.select(
            F.col(f"{REJECT}.node").alias("node"),
            F.lit(self._epoch).cast("long").alias("epoch"),
            F.col(f"{REJECT}.error").alias("error"),
            F.col(f"{REJECT}.raw").alias("raw"),
            F.timestamp_millis(F.lit(self._entry.time_ms)).alias("time"),
        )

    def _judged(self, node: Node, rows: DataFrame) -> DataFrame:
        """The rows that a sink is to receive, those among them that it cannot take as rejects."""
        assert isinstance(node.component, Sink)
        rows = self._collapsed(node, rows)
        return node.component.judged(rows, self._lowering.context(node, self._clock))

    def _judged_by_target(self, node: Node) -> bool:
        """Whether a sink's bad rows go elsewhere, and the state of its target decides which they are: that is decided once per epoch."""
        return isinstance(node.component, Sink) and node.component.judges_by_target and node.isolates and bool(node.dead_letter)

    def _holder(self, node: Node) -> str:
        """The frame that a node's bad rows are found in: its own, or the root's for what stands above."""
        return node.name if node in (*self._plan.below, *self._plan.sinks) else self._outlet

    def _count(self, name: str) -> None:
        """One more execution of a node's frame: how often does that read the root?"""
        path = [name]
        while path[-1] != self._outlet:
            if path[-1] in self._materialised:
                return
            path.append(self._plan.node(path[-1]).inputs[0])
        if path[-1] in self._materialised:
            return
        self.scans += 1
        persisted = [step for step in path if any(self._full.get(step) is frame for frame in self._persisted)]
        self._materialised.update(persisted)

    def _above(self, node: Node) -> list[Node]:
        """The node and what is computed for it in this epoch."""
        path = [node]
        while path[-1].name != self._outlet:
            path.append(self._plan.node(path[-1].inputs[0]))
        return [*path, *self._plan.streamed]

    def _dear(self, node: Node) -> bool:
        return self._plan.stateful or any(step.dear or calls_of(step, self._plan.functions) for step in self._above(node))

    def _varies(self, node: Node) -> bool:
        """Whether the node itself, and not only one above that is staged already, gives other rows each time."""
        steps = [step for step in self._above(node) if step.name not in self._materialised]
        return any(map(self._lowering.varies, steps)) or any(
            used.name in self._lowering.varying for step in steps for used in calls_of(step, self._plan.functions)
        )


def _owned(frame: DataFrame, node: Node) -> DataFrame:
    """The rejects of a frame, with the name of the node that they come from."""
    named = F.struct(F.lit(node.name).alias("node"), F.col(f"{REJECT}.raw"), F.col(f"{REJECT}.error"))
    return frame.withColumn(REJECT, F.when(F.col(REJECT).isNotNull(), named))
