"""A query whose result is kept up to date, epoch by epoch.

Epoch `e` reads version `e - 1` of the operators' stores and makes version `e`, so an epoch can be repeated. A version is a list of
fragments for each store: RDDs whose rows are held in memory or on disk. The last two versions are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millstream.engine.incremental.assignment import Assignment
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.linear import FixedRows
from millstream.engine.incremental.operators.linear import Input as InputOperator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.steps import CONF, Steps
from millstream.engine.incremental.tracing import Piece, Trace, Tracing
from millstream.engine.incremental.weights import WEIGHT, consolidated, partitioned
from millstream.sql.catalyst.bridge import Bridge, Plan, Rdd

_FRAGMENTS = 8
"""A store with more fragments is merged."""

Version = dict[str, list[Rdd]]
"""Store → its fragments."""


@dataclass(frozen=True, slots=True)
class Input:
    """A table that changes."""

    schema: StructType
    append_only: bool = False


class View:
    """The result of a query."""

    def __init__(self, spark: SparkSession, text: str, inputs: Mapping[str, Input], partitions: int = 2) -> None:
        self._bridge = Bridge(_compiling(spark))
        self._partitions = partitions
        placeholders = {name: self._placeholder(each.schema) for name, each in inputs.items()}
        analysed = _analysed(self._bridge, text, placeholders)
        steps = Steps(self._bridge, {self._bridge.rdd_id(leaf): name for name, leaf in placeholders.items()})
        self.root_step = steps.of(analysed)
        assignment = Assignment(self._bridge, [name for name, each in inputs.items() if each.append_only])
        self.root = assignment.assign(self.root_step)
        self.operators = assignment.operators
        self._outputs = {name: leaf.output() for name, leaf in placeholders.items()}
        self._trace = self._compile()
        self._merging: dict[str, Piece] = {}
        self.versions: dict[int, Version] = {-1: {name: [self._no_rows(output)] for name, output in self._trace.schemas.items()}}

    def _placeholder(self, schema: StructType) -> Plan:
        empty = self._bridge.spark.createDataFrame([], schema)
        return self._bridge.leaf(empty._jdf.queryExecution().analyzed().output(), self._bridge.empty_rdd())

    # Compiling

    def _compile(self) -> Trace:
        tracing = Tracing(self._bridge, self._partitions)
        deltas: dict[int, Delta] = {}
        readers = [id(each) for operator in self.operators for each in operator.inputs]
        for operator in self.operators:
            delta = self._trace_operator(tracing, operator, [deltas[id(each)] for each in operator.inputs])
            if readers.count(id(operator)) > 1:
                cut = tracing.cut(tracing.relations.frame_of(delta, operator.step.columns))
                delta = tracing.relations.delta_of(cut, operator.step.columns)
            deltas[id(operator)] = delta
        result = consolidated(tracing.relations.frame_of(deltas[id(self.root)], self.root.step.columns))
        tracing.trace.output = tracing.slot_of(tracing.cut(result))
        return tracing.trace

    def _trace_operator(self, tracing: Tracing, operator: Operator, deltas: list[Delta]) -> Delta:
        if isinstance(operator, InputOperator):
            return self._leaf_delta(tracing, operator, f"input:{operator.step.input}")
        if isinstance(operator, FixedRows):
            return self._leaf_delta(tracing, operator, f"fixed:{operator.number}")
        return operator.trace(tracing, deltas)

    def _leaf_delta(self, tracing: Tracing, operator: Operator, slot: str) -> Delta:
        bridge = self._bridge
        own = self._outputs[operator.step.input] if operator.step.input else operator.step.plan.output()
        attributes = [each.newInstance() for each in bridge.items(own)]
        weight = bridge.alias(bridge.expression("1L"), WEIGHT).toAttribute()
        plan = tracing.leaf(slot, bridge.seq([*attributes, weight]), keyed=False)._jdf.logicalPlan()
        pairs = zip(attributes, bridge.items(operator.step.plan.output()), strict=True)
        items = [bridge.alias(old, str(new.name()), new.exprId()) for old, new in pairs]
        named = bridge.alias(weight, WEIGHT)
        return Delta(bridge.project([*items, named], plan), named.toAttribute())

    def _no_rows(self, output: Any) -> Rdd:
        """An empty fragment, partitioned as all are."""
        empty = self._bridge.frame(self._bridge.leaf(output, self._bridge.empty_rdd()))
        return self._bridge.hold(output, self._bridge.rdd(partitioned(empty, self._partitions)))

    # Running

    def step(self, epoch: int, deltas: Mapping[str, DataFrame]) -> DataFrame:
        """The changes of the result in an epoch, from the changes of the inputs: their columns and `_w`."""
        bridge, before = self._bridge, self.versions[epoch - 1]
        bridge.checkpoint_all_ancestors()
        slots: dict[str, Rdd] = {f"input:{name}": bridge.rdd(frame) for name, frame in deltas.items()}
        slots |= {f"fixed:{each.number}": self._fixed(each, epoch) for each in self.operators if isinstance(each, FixedRows)}
        slots |= {f"store:{name}": bridge.union_rdd(fragments, self._partitions) for name, fragments in before.items()}
        for piece in self._trace.pieces:
            slots[piece.slot] = bridge.hold(piece.output, self._run(piece, slots))
        self.versions[epoch] = {name: self._merged(name, [*before[name], slots[slot]]) for name, slot in self._trace.added.items()}
        self.versions.pop(epoch - 2, None)
        return self._result(slots[self._trace.output])

    def _run(self, piece: Piece, slots: Mapping[str, Rdd]) -> Rdd:
        return self._bridge.bound(piece.plan, [(leaf, slots[slot]) for leaf, slot in piece.leaves]).execute()

    def _result(self, rows: Rdd) -> DataFrame:
        """The changes under the names of the query."""
        bridge = self._bridge
        plan = bridge.leaf(self._trace.pieces[-1].output, rows)
        own = {str(each.name()): each for each in bridge.items(plan.output())}
        places = {column.id: f"c{index}" for index, column in enumerate(self.root_step.columns)}
        items = [
            bridge.alias(own[places[int(each.exprId().id())]], str(each.name())) for each in bridge.items(self.root_step.plan.output())
        ]
        return bridge.frame(bridge.project([*items, bridge.alias(own[WEIGHT], WEIGHT)], plan))

    def _fixed(self, operator: Operator, epoch: int) -> Rdd:
        """Rows of the query itself: a change of the first epoch."""
        bridge = self._bridge
        items = [*bridge.items(operator.step.plan.output()), bridge.alias(bridge.expression("1L"), WEIGHT)]
        rows = bridge.frame(bridge.project(items, operator.step.plan))
        return bridge.rdd(rows if epoch == 0 else rows.where("false"))

    def _merged(self, name: str, fragments: list[Rdd]) -> list[Rdd]:
        if len(fragments) <= _FRAGMENTS:
            return fragments
        if name not in self._merging:
            tracing = Tracing(self._bridge, self._partitions)
            self._merging[name] = tracing.piece_over(self._trace.schemas[name], consolidated)
        piece = self._merging[name]
        rows = self._run(piece, {"rows": self._bridge.union_rdd(fragments, self._partitions)})
        return [self._bridge.hold_copies(piece.output, rows)]


def _compiling(spark: SparkSession) -> SparkSession:
    """A session of its own for compiling, with the functions and settings of another."""
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in CONF.items():
        session.conf.set(name, value)
    return session


def _analysed(bridge: Bridge, text: str, leaves: Mapping[str, Plan]) -> Plan:
    """The analysed plan of a query over leaves, which stand for its tables."""
    parsed = bridge.with_inlined_definitions(bridge.parse(text))
    return bridge.analysed(bridge.frame(bridge.with_tables(parsed, leaves)))
