"""A query whose result is kept up to date, epoch by epoch.

Epoch `e` reads version `e - 1` of the operators' stores and makes version `e`, so an epoch can be repeated. A version is a list of
fragments for each store: RDDs whose rows are held in memory or on disk. Versions before the last finished epoch are freed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millstream.engine.incremental.arrivals import Feed, arrivals
from millstream.engine.incremental.assignment import Assignment
from millstream.engine.incremental.keys import Keys
from millstream.engine.incremental.operators.inputs import FixedRows
from millstream.engine.incremental.operators.unique import require_unique
from millstream.engine.incremental.relations import Delta, Refused, Relations, Step
from millstream.engine.incremental.steps import CONF, Steps
from millstream.engine.incremental.tracing import Piece, Trace, Tracing
from millstream.engine.incremental.weights import WEIGHT, consolidated, partitioned, repeated
from millstream.sql.catalyst.bridge import Bridge, Plan, Rdd

_FRAGMENTS = 8
"""A store with more fragments is merged."""
_LARGE_BYTES = 2 << 20
"""After an epoch that added more, the next one runs with generated code."""
_ORDER = {"Sort", "GlobalLimit", "LocalLimit", "Offset"}
_UNSTORABLE = re.compile(r"\b(variant|interval|void|collate)\b")

Version = dict[str, tuple[Rdd, ...]]
"""Store → its fragments."""
Relate = Callable[[Mapping[str, DataFrame]], DataFrame]
"""Computes the result from frames of the inputs."""
Encode = Callable[[DataFrame, tuple[str, ...] | None], DataFrame]
"""Changes of the result, whose columns are `c0`, `c1`, … and a weight, in the form in which they leave; and the key among these columns."""


class View:
    """The result of a query over inputs that change."""

    def __init__(self, spark: SparkSession, feeds: Mapping[str, Feed], relate: Relate, partitions: int = 2, *, final: bool = False) -> None:
        """With `final` the result is returned once, by an epoch that ends the input."""
        self.feeds, self._partitions = dict(feeds), partitions
        self._bridge = bridge = Bridge(_compiling(spark))
        bridge.check()
        leaves = {name: self._placeholder(feed) for name, feed in feeds.items()}
        result = relate({name: bridge.frame(leaf) for name, leaf in leaves.items()})
        steps = Steps(bridge, {bridge.rdd_id(leaf): name for name, leaf in leaves.items()})
        self.names = tuple(result.columns)
        self.root_step = steps.of(bridge.analysed(result))
        assignment = Assignment(bridge, self.feeds)
        self.final = final
        self.root = assignment.assign(_below_order(self.root_step) if final else self.root_step)
        self.operators = assignment.operators
        self._trace = Trace()
        self._traces: dict[bool, Trace] = {}
        self._compile_for: Callable[[], Trace] = Trace
        self._merging: dict[str, Piece] = {}
        self.versions: dict[int, Version] = {}
        self._slots: dict[str, Rdd] = {}
        self._last_bytes = 0

    @property
    def bridge(self) -> Bridge:
        return self._bridge

    @property
    def places(self) -> list[str]:
        """The columns of a change in the order of the query: a column that is selected twice is stored once."""
        known = {column.id: f"c{index}" for index, column in enumerate(self.root_step.columns)}
        return [known[int(each.exprId().id())] for each in self._bridge.items(self.root_step.plan.output())]

    def find_keys(self) -> list[tuple[str, ...]]:
        """The names of columns that identify a row of the result, the shortest first."""
        found = Keys(self._bridge, {name: feed.key for name, feed in self.feeds.items() if feed.is_changelog}).of(self.root_step)
        ids = [int(each.exprId().id()) for each in self._bridge.items(self.root_step.plan.output())]
        return [tuple(self.names[ids.index(column)] for column in sorted(key, key=ids.index)) for key in found]

    def _placeholder(self, feed: Feed) -> Plan:
        empty = self._bridge.spark.createDataFrame([], feed.schema)
        output = [each for each in self._bridge.items(empty._jdf.queryExecution().analyzed().output()) if each.name() in feed.columns]
        return self._bridge.leaf(self._bridge.seq(output), self._bridge.empty_rdd())

    # Compiling

    def compile(self, encode: Encode, key: tuple[str, ...] | None = None, claimed_by: str = "") -> None:
        """Compile an epoch; `key` names columns that identify a row of the result, None if all columns do. `claimed_by` is the node whose
        user says so, where it does not follow from the query: then it is checked.
        """
        self._compile_for = lambda: self._compile(encode, key, claimed_by)
        self._trace = self._trace_for(large=False)
        self._require_storable(self._trace)
        self.versions = {-1: self.empty_version()}

    def _trace_for(self, *, large: bool) -> Trace:
        """The compiled epoch for few rows or for many. Generated code is faster for many rows, but Spark writes it anew in every epoch."""
        if large not in self._traces:
            self._bridge.spark.conf.set("spark.sql.codegen.wholeStage", str(large).lower())
            self._traces[large] = self._compile_for()
        return self._traces[large]

    def _compile(self, encode: Encode, key: tuple[str, ...] | None, claimed_by: str) -> Trace:
        bridge = self._bridge
        tracing = Tracing(bridge, self._partitions)
        empty = arrivals({name: bridge.spark.createDataFrame([], feed.schema) for name, feed in self.feeds.items()})
        tracing.expect(empty, {name: len(feed.schema) for name, feed in self.feeds.items()})
        deltas: dict[int, Delta] = {}
        readers = [id(each) for operator in self.operators for each in operator.inputs]
        for operator in self.operators:
            delta = operator.trace(tracing, [deltas[id(each)] for each in operator.inputs])
            if readers.count(id(operator)) > 1:
                cut = tracing.cut(tracing.relations.frame_of(delta, operator.step.columns))
                delta = tracing.relations.delta_of(cut, operator.step.columns)
            deltas[id(operator)] = delta
        if self.final:
            self._finish_final(tracing, deltas[id(self.root)])
            return tracing.trace
        changes = tracing.relations.frame_of(deltas[id(self.root)], self.root.step.columns)
        named = consolidated(changes).selectExpr(*[f"{place} AS c{index}" for index, place in enumerate(self.places)], WEIGHT)
        key_places = None if key is None else tuple(f"c{self.names.index(name)}" for name in key)
        if claimed_by and key and key_places:
            named = tracing.cut(named)
            require_unique(tracing, len(self.operators), named, key_places, key, claimed_by)
        tracing.finish(encode(named, key_places))
        tracing.finish_log(_parts_of(tracing.trace))
        return tracing.trace

    def _finish_final(self, tracing: Tracing, delta: Delta) -> None:
        """Keep the result, and return nothing until the input ends."""
        columns = self.root.step.columns
        hashed = [column.attribute for column in columns if "map<" not in str(column.attribute.dataType().catalogString())]
        changes = tracing.relations.frame_of(delta, columns, hashed)
        change = tracing.cut(consolidated(partitioned(changes, self._partitions)))
        tracing.store(len(self.operators), "result", change).add(change)
        tracing.finish(self._final_rows(tracing.relations, tracing.relations.no_rows(columns)))
        tracing.finish_log(_parts_of(tracing.trace))

    def _final_rows(self, relations: Relations, kept: DataFrame) -> DataFrame:
        """ORDER BY and LIMIT at the end of the query, over the kept rows."""
        bridge = self._bridge
        plan, _ = relations.plan_of(kept, self.root.step.columns)
        ordered = bridge.replaced(self.root_step.plan, [(self.root.step.plan, plan)]) if self.root.step is not self.root_step else plan
        items = [bridge.alias(each, f"c{index}") for index, each in enumerate(bridge.items(self.root_step.plan.output()))]
        return bridge.frame(bridge.project(items, ordered))

    def _require_storable(self, trace: Trace) -> None:
        for output in (*trace.schemas.values(), trace.pieces[-1].output):
            for column in self._bridge.items(output):
                kind = str(column.dataType().catalogString()).lower()
                if _UNSTORABLE.search(kind):
                    raise Refused(f"a value of type `{kind}` cannot be kept as state; cast it to another type")

    def _no_rows(self, output: Any) -> Rdd:
        """An empty fragment, partitioned as all are."""
        empty = self._bridge.frame(self._bridge.leaf(output, self._bridge.empty_rdd()))
        return self._bridge.hold(output, self._bridge.rdd(partitioned(empty, self._partitions)))

    # Running

    def step(self, epoch: int, frame: DataFrame, *, ends: bool = False) -> DataFrame:
        """The changes of the result in an epoch, from the rows that arrived. They are computed by the job that reads them. `ends`: no more
        rows will come.
        """
        self._trace = self._trace_for(large=self._last_bytes > _LARGE_BYTES)
        bridge, before, trace = self._bridge, self.versions[epoch - 1], self._trace
        bridge.checkpoint_all_ancestors()
        self._slots = slots = {"arrivals": self._arrivals(frame)}
        slots |= {each.slot: self._fixed(each, epoch) for each in self.operators if isinstance(each, FixedRows)}
        slots |= {f"store:{name}": bridge.union_rdd(list(fragments), self._partitions) for name, fragments in before.items()}
        for piece in trace.pieces:
            slots[piece.slot] = bridge.hold(piece.output, self._run(piece))
        self.versions[epoch] = {name: (*before[name], slots[slot]) for name, slot in trace.added.items()}
        if self.final and ends:
            slots[trace.output] = self._final_result(epoch)
        return self.result_of(slots[trace.output], frame.sparkSession)

    def _final_result(self, epoch: int) -> Rdd:
        store = f"{len(self.operators)}.result"
        rows = self._bridge.union_rdd(list(self.versions[epoch][store]), self._partitions)
        kept = self._bridge.frame(self._bridge.leaf(self._trace.schemas[store], rows))
        final = self._final_rows(Relations(self._bridge), repeated(consolidated(kept)))
        return self._bridge.hold(self._trace.pieces[-1].output, self._bridge.rdd(final))

    def _arrivals(self, frame: DataFrame) -> Rdd:
        rows = self._bridge.rdd(frame)
        readers = [leaf for piece in self._trace.pieces for leaf in piece.leaves if leaf[1] == "arrivals"]
        return self._bridge.hold(frame._jdf.queryExecution().analyzed().output(), rows) if len(readers) > 1 else rows

    def _run(self, piece: Piece, rows: Rdd | None = None) -> Rdd:
        slots = self._slots if rows is None else {"rows": rows}
        return self._bridge.bound(piece.plan, [(leaf, slots[slot]) for leaf, slot in piece.leaves]).execute()

    def result_of(self, rows: Rdd, spark: SparkSession) -> DataFrame:
        """The rows of a result as a frame of a session, under the names of the query."""
        bridge, output = Bridge(spark), self._trace.pieces[-1].output
        more = [str(each.name()) for each in bridge.items(output)][len(self.names) :]
        renamed = [each.withName(name) for each, name in zip(bridge.items(output), (*self.names, *more), strict=True)]
        return bridge.frame(bridge.leaf(bridge.seq(renamed), rows))

    def empty_result(self, spark: SparkSession) -> DataFrame:
        return self.result_of(self._bridge.empty_rdd(), spark)

    def _fixed(self, operator: FixedRows, epoch: int) -> Rdd:
        bridge = self._bridge
        items = [*bridge.items(operator.step.plan.output()), bridge.alias(bridge.expression("1L"), WEIGHT)]
        rows = bridge.frame(bridge.project(items, operator.step.plan))
        return bridge.rdd(rows if epoch == 0 else rows.where("false"))

    # State

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(self._trace.schemas)

    @property
    def parts(self) -> list[str]:
        """The parts of a frame of stored rows: the stores and the result. A query without state has its result twice, since rows of one
        part alone would not be tagged.
        """
        return _parts_of(self._trace)

    def added(self) -> DataFrame:
        """What the epoch has added to all stores, and its result, as one frame; the last number is the result's."""
        assert self._trace.log is not None
        piece = self._trace.log
        return self._bridge.frame(self._bridge.leaf(piece.output, self._run(piece)))

    def added_bytes(self) -> int:
        """The size of what the epoch has added, as far as it is computed."""
        self._last_bytes = self._bridge.held_bytes([self._slots[slot] for slot in (*self._trace.added.values(), self._trace.output)])
        return self._last_bytes

    @property
    def added_schema(self) -> StructType:
        """How the rows of all stores and of the result are written."""
        empty = self._bridge.empty_rdd()
        return self._tagged(dict.fromkeys((*self.stores, ""), (empty,))).schema

    def state(self, epoch: int) -> DataFrame:
        """The rows of all stores, as one frame like `added`, without a result."""
        return self._tagged({**self.versions[epoch], "": (self._bridge.empty_rdd(),)})

    def _tagged(self, rows: Mapping[str, tuple[Rdd, ...]]) -> DataFrame:
        """The stores and the result in one frame."""
        bridge, frames = self._bridge, {}
        for name in self.parts:
            fragments = rows[name] if name in rows else (bridge.empty_rdd(),)
            own = [each.newInstance().withNullability(True) for each in bridge.items(self._output_of(name))]
            frames[name] = bridge.frame(bridge.leaf(bridge.seq(own), bridge.union_rdd(list(fragments), self._partitions)))
        return arrivals(frames)

    def _output_of(self, store: str) -> Any:
        return self._trace.schemas[store] if store.strip() else self._trace.pieces[-1].output

    def columns_of_parts(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The parts of a frame of stored rows, with their columns."""
        return tuple((part, tuple(str(each.name()) for each in self._bridge.items(self._output_of(part)))) for part in self.parts)

    def width(self, store: str) -> int:
        return int(self._output_of(store).size())

    def named_like(self, store: str, frame: DataFrame) -> DataFrame:
        """A frame of stored rows under the store's own column names."""
        return frame.toDF(*[str(each.name()) for each in self._bridge.items(self._output_of(store))])

    def empty_version(self) -> Version:
        return {name: (self._no_rows(output),) for name, output in self._trace.schemas.items()}

    def adopt(self, epoch: int, version: Version) -> None:
        """Continue from stored rows."""
        self.versions = {epoch: version}

    def hold_store(self, name: str, frame: DataFrame) -> Rdd:
        """Rows read from files, as a fragment of a store."""
        rows = self._bridge.rdd(partitioned(self.named_like(name, frame), self._partitions))
        return self._bridge.hold(self._trace.schemas[name], rows)

    def finish(self, epoch: int) -> None:
        """Forget what only this epoch or earlier versions needed, and merge stores with many fragments."""
        before = [rdd for number, version in self.versions.items() for rdds in version.values() for rdd in rdds]
        held = [rdd for slot, rdd in self._slots.items() if slot.startswith("piece:") or slot == "arrivals"]
        self.versions = {epoch: {name: self._merged(name, fragments) for name, fragments in self.versions[epoch].items()}}
        kept = {int(rdd.id()) for rdds in self.versions[epoch].values() for rdd in rdds}
        for rdd in {int(rdd.id()): rdd for rdd in (*before, *held)}.values():
            if int(rdd.id()) not in kept:
                rdd.unpersist(False)
        self._slots = {}

    def _merged(self, name: str, fragments: tuple[Rdd, ...]) -> tuple[Rdd, ...]:
        if len(fragments) <= _FRAGMENTS:
            return fragments
        if name not in self._merging:
            self._merging[name] = Tracing(self._bridge, self._partitions).piece_over(self._trace.schemas[name], consolidated)
        piece = self._merging[name]
        rows = self._bridge.hold_copies(piece.output, self._run(piece, self._bridge.union_rdd(list(fragments), self._partitions)))
        rows.count()  # a job of its own: only then can the fragments be forgotten
        return (rows,)

    def close(self) -> None:
        """Free all held rows."""
        for version in self.versions.values():
            for rdds in version.values():
                for rdd in rdds:
                    rdd.unpersist(False)
        self.versions, self._slots = {}, {}


def _below_order(step: Step) -> Step:
    """The part of a query below its last ORDER BY, LIMIT and projections."""
    below, ordered = step, step
    while below.kind in {"Project", *_ORDER}:
        ordered = below.children[0] if below.kind in _ORDER else ordered
        below = below.children[0]
    return ordered


def _parts_of(trace: Trace) -> list[str]:
    return [*(trace.schemas or (" ",)), ""]


def _compiling(spark: SparkSession) -> SparkSession:
    """A session of its own for compiling, with the functions and settings of another."""
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in CONF.items():
        session.conf.set(name, value)
    return session


def with_weights(frame: DataFrame, key: tuple[str, ...] | None) -> DataFrame:
    """Changes as they are: with a weight."""
    return frame


def query_over(text: str) -> Relate:
    """A query as a function of the frames that it names."""

    def relate(frames: Mapping[str, DataFrame]) -> DataFrame:
        bridge = Bridge(next(iter(frames.values())).sparkSession)
        tables = {name: frame._jdf.queryExecution().analyzed() for name, frame in frames.items()}
        return bridge.frame(bridge.with_tables(bridge.with_inlined_definitions(bridge.parse(text)), tables))

    return relate
