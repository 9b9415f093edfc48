"""The leaves of a query: inputs that change, and rows that the query itself contains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import functions as F

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, column_names, consolidated, negated, partitioned, union
from millstream.plan.changelog import DELETE, SEQUENCE, op_of


@dataclass
class FixedRows(Operator):
    """Rows that the query itself contains (VALUES): a change of the first epoch."""

    kind: ClassVar[str] = "fixed rows"

    @property
    def slot(self) -> str:
        return f"fixed:{self.number}"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        bridge = tracing.bridge
        own = [each.newInstance() for each in bridge.items(self.step.plan.output())]
        weight = bridge.alias(bridge.expression("1L"), WEIGHT).toAttribute()
        frame = tracing.leaf(self.slot, bridge.seq([*own, weight]), keyed=False)
        return tracing.relations.delta_of(frame.toDF(*column_names(len(own)), WEIGHT), self.step.columns)


@dataclass
class Input(Operator):
    """An input whose rows arrive as they are, or with a weight."""

    kind: ClassVar[str] = "input"

    feed: Feed = field(kw_only=True)

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        arrived = tracing.arrival(self.step.input)
        names = arrived.columns
        weight = f"{names[-1]} AS {WEIGHT}" if self.feed.weighted else f"1L AS {WEIGHT}"
        count = len(self.step.columns)
        frame = arrived.selectExpr(*[f"{name} AS c{index}" for index, name in enumerate(names[:count])], weight)
        return tracing.relations.delta_of(frame, self.step.columns)


@dataclass
class Table(Operator):
    """An input that is a changelog: the last change of each key in an epoch replaces the stored row of that key."""

    kind: ClassVar[str] = "table"

    feed: Feed = field(kw_only=True)

    @property
    def key(self) -> str:
        return ", ".join(self.feed.key)

    @property
    def stores(self) -> tuple[str, ...]:
        return ("one row per key",)

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        names = self.feed.schema.names
        arrived = tracing.arrival(self.step.input)
        place = {name: f"a{index}" for index, name in enumerate(names)}
        arrived = arrived.toDF(*place.values())
        columns = [f"{place[name]} AS c{index}" for index, name in enumerate(self.feed.columns)]
        keys = [f"c{self.feed.columns.index(name)}" for name in self.feed.key]
        order = f"coalesce(cast({place[SEQUENCE]} AS bigint), -1L)" if SEQUENCE in names else "0L"
        rows = arrived.selectExpr(*columns, f"{place[op_of(names)]} AS op", f"struct({order}, monotonically_increasing_id()) AS place")
        rows = rows.selectExpr("*", f"xxhash64({', '.join(keys)}) AS {HASH}")
        cells = [f"c{index}" for index in range(len(self.feed.columns))]
        last = partitioned(rows, tracing.partitions).groupBy(HASH, *keys)
        chosen = last.agg(F.expr(f"max_by(struct({', '.join([*cells, 'op'])}), place) AS row"))
        new = tracing.cut(chosen.selectExpr(*[f"row.{cell} AS {cell}" for cell in cells], "row.op AS op", HASH))
        present = new.where(f"op IS NULL OR op <> '{DELETE}'").selectExpr(*cells, f"1L AS {WEIGHT}", HASH)
        store = tracing.store(self.number, "rows", present)
        touched = new.selectExpr(*[f"{key} AS r{key}" for key in keys], f"{HASH} AS rh")
        same = " AND ".join([f"{HASH} = rh", *(f"{key} <=> r{key}" for key in keys)])
        old = consolidated(store.at(new.select(HASH))).join(touched.hint("shuffle_hash"), F.expr(same), "left_semi")
        change = tracing.cut(consolidated(union([present, negated(old)])))
        store.add(change)
        return tracing.relations.delta_of(change, self.step.columns)
