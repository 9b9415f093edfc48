"""From a query to a compiled epoch: Spark's plan becomes steps, the steps get operators, and the operators are traced.

An epoch is compiled for few rows, when its plan is interpreted, and for many, when Spark generates code and operators work as is best for
the sizes of their stores and changes.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from millstream.engine.incremental.analysis import Analysis
from millstream.engine.incremental.arrivals import arrivals
from millstream.engine.incremental.assignment import Assignment
from millstream.engine.incremental.keys import Keys
from millstream.engine.incremental.operators.unique import require_unique
from millstream.engine.incremental.relations import Delta, Refused, Relations, Step, is_unstorable
from millstream.engine.incremental.steps import Steps
from millstream.engine.incremental.tracing import SMALL, CompiledEpoch, Form, Tracing
from millstream.engine.incremental.weights import WEIGHT, consolidated, partitioned

_FORMS = 8
"""So many forms are compiled at most: each takes about a second."""
_ORDER = {"Sort", "GlobalLimit", "LocalLimit", "Offset"}

Encode = Callable[[DataFrame, tuple[str, ...] | None], DataFrame]
"""Changes of the result, whose columns are `c0`, `c1`, … and a weight, in the form in which they leave; and the key among these columns."""


class Compilation:
    """A query, its operators, and its epoch as compiled so far."""

    def __init__(self, analysis: Analysis, partitions: int, *, final: bool) -> None:
        self.feeds, self.names, self.partitions, self.final = analysis.feeds, analysis.names, partitions, final
        self.bridge = bridge = analysis.bridge
        self.root_step = Steps(bridge, analysis.inputs, analysis.node).of(analysis.plan)
        self.streamed = analysis.streamed
        assignment = Assignment(bridge, self.feeds)
        self.root = assignment.assign_below(*_below_order(self.root_step)) if final else assignment.assign(self.root_step)
        self.operators = assignment.operators
        self._compile_for: Callable[[Form], CompiledEpoch] = lambda _: CompiledEpoch()
        self._epochs: dict[Form, CompiledEpoch] = {}

    @property
    def kinds(self) -> dict[int, str]:
        """The number of an operator → its kind. The last one is not the query's: it keeps the final result, or checks the primary key."""
        return {each.number: each.kind for each in self.operators} | {len(self.operators): "final" if self.final else "primary key"}

    @property
    def places(self) -> list[str]:
        """The columns of a change in the order of the query: a column that is selected twice is stored once."""
        known = {column.id: f"c{index}" for index, column in enumerate(self.root_step.columns)}
        return [known[int(each.exprId().id())] for each in self.bridge.items(self.root_step.plan.output())]

    def find_keys(self) -> list[tuple[str, ...]]:
        """The names of columns that identify a row of the result, the shortest first."""
        found = Keys(self.bridge, {name: feed.key for name, feed in self.feeds.items() if feed.is_keyed}).of(self.root_step)
        ids = [int(each.exprId().id()) for each in self.bridge.items(self.root_step.plan.output())]
        return [tuple(self.names[ids.index(column)] for column in sorted(key, key=ids.index)) for key in found]

    def compile(self, encode: Encode, key: tuple[str, ...] | None = None, claimed_by: str = "") -> CompiledEpoch:
        """Compile the epoch; `key` names columns that identify a row of the result, None if all columns do. `claimed_by` is the node whose
        user says so, where it does not follow from the query: then it is checked.
        """
        self._compile_for = lambda form: self._compile(encode, key, claimed_by, form)
        compiled = self.epoch_for(SMALL)
        self._require_storable(compiled)
        return compiled

    def epoch_for(self, form: Form) -> CompiledEpoch:
        """The compiled epoch. Generated code is faster for many rows, but Spark writes it anew in every epoch."""
        if form.large:
            form = form.only(self._epochs[SMALL].asked_compact, self._epochs[SMALL].asked_idle)
        if form not in self._epochs and len(self._epochs) >= _FORMS:
            form = Form(form.large)
        if form not in self._epochs:
            self.bridge.spark.conf.set("spark.sql.codegen.wholeStage", str(form.large).lower())
            self._epochs[form] = self._compile_for(form)
        return self._epochs[form]

    def _compile(self, encode: Encode, key: tuple[str, ...] | None, claimed_by: str, form: Form) -> CompiledEpoch:
        bridge = self.bridge
        tracing = Tracing(bridge, self.partitions, form)
        arriving = {feed.arrives_as or name: feed.plain_schema for name, feed in self.feeds.items()}
        empty = arrivals({name: bridge.spark.createDataFrame([], schema) for name, schema in arriving.items()})
        tracing.expect(empty, {name: len(schema) for name, schema in arriving.items()})
        deltas = self._trace_operators(tracing)
        if self.final:
            self._finish_final(tracing, deltas[id(self.root)])
            return tracing.epoch
        changes = tracing.relations.frame_of(deltas[id(self.root)], self.root.step.columns)
        named = consolidated(changes).selectExpr(*[f"{place} AS c{index}" for index, place in enumerate(self.places)], WEIGHT)
        key_places = None if key is None else tuple(f"c{self.names.index(name)}" for name in key)
        if claimed_by and key and key_places:
            named = tracing.cut(named)
            require_unique(tracing, len(self.operators), named, key_places, key, claimed_by)
        tracing.finish(encode(named, key_places))
        tracing.finish_log()
        return tracing.epoch

    def _trace_operators(self, tracing: Tracing) -> dict[int, Delta]:
        """The changes of every operator. Those with several readers are computed once."""
        deltas: dict[int, Delta] = {}
        readers = [id(each) for operator in self.operators for each in operator.inputs]
        for operator in self.operators:
            delta = operator.trace(tracing, [deltas[id(each)] for each in operator.inputs])
            if readers.count(id(operator)) > 1:
                cut = tracing.cut(tracing.relations.frame_of(delta, operator.step.columns))
                delta = tracing.relations.delta_of(cut, operator.step.columns)
            deltas[id(operator)] = delta
        return deltas

    # A result that is returned once

    @property
    def final_store(self) -> str:
        """The store with the result of a query that returns it once."""
        return f"{len(self.operators)}.result"

    def _finish_final(self, tracing: Tracing, delta: Delta) -> None:
        """Keep the result, and return nothing until the input ends."""
        columns = self.root.step.columns
        hashed = [column.attribute for column in columns if "map<" not in str(column.attribute.dataType().catalogString())]
        changes = tracing.relations.frame_of(delta, columns, hashed)
        change = tracing.cut(consolidated(partitioned(changes, self.partitions)))
        tracing.store(len(self.operators), "result", change).add(change)
        tracing.finish(self.final_rows(tracing.relations.no_rows(columns)))
        tracing.finish_log()

    def final_rows(self, kept: DataFrame) -> DataFrame:
        """ORDER BY and LIMIT at the end of the query, over the kept rows."""
        bridge = self.bridge
        plan, _ = Relations(bridge).plan_of(kept, self.root.step.columns)
        ordered = bridge.replaced(self.root_step.plan, [(self.root.step.plan, plan)]) if self.root.step is not self.root_step else plan
        items = [bridge.alias(each, f"c{index}") for index, each in enumerate(bridge.items(self.root_step.plan.output()))]
        return bridge.frame(bridge.project(items, ordered))

    def _require_storable(self, compiled: CompiledEpoch) -> None:
        for output in (*compiled.schemas.values(), compiled.pieces[-1].output):
            for column in self.bridge.items(output):
                kind = str(column.dataType().catalogString()).lower()
                if is_unstorable(kind):
                    raise Refused(f"a value of type `{kind}` cannot be kept as state; cast it to another type")


def _below_order(step: Step) -> tuple[list[Step], Step]:
    """The last ORDER BY, LIMIT and projections of a query, and the part below them."""
    chain, passed, below, ordered = list[Step](), list[Step](), step, step
    while below.kind in {"Project", *_ORDER}:
        passed.append(below)
        if below.kind in _ORDER:
            chain, passed, ordered = [*chain, *passed], [], below.children[0]
        below = below.children[0]
    return chain, ordered


def with_weights(frame: DataFrame, key: tuple[str, ...] | None) -> DataFrame:
    """Changes as they are: with a weight."""
    return frame
