"""The leaves of a query: inputs that change, and rows that the query itself contains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Store, Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, column_names, consolidated, grouped, negated, partitioned, union
from millstream.plan.changelog import DELETE, SEQUENCE, op_of

_AT = "_at"
"""When a row arrived: the time of its epoch in milliseconds."""


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
        return tracing.relations.delta_of(self._arrived(tracing), self.step.columns)

    def _arrived(self, tracing: Tracing) -> DataFrame:
        arrived = _arrival(tracing, self)
        names = arrived.columns
        weight = f"{names[-1]} AS {WEIGHT}" if self.feed.weighted else f"1L AS {WEIGHT}"
        count = len(self.step.columns)
        return arrived.selectExpr(*[f"{name} AS c{index}" for index, name in enumerate(names[:count])], weight)


@dataclass
class NativePart(Input):
    """A part of the query that Spark's stream computes: its rows are only added."""

    kind: ClassVar[str] = "native"


@dataclass
class RecentRows(Input):
    """An input whose rows are removed some time after they arrived. They are stored with the time of the epoch that brought them."""

    @property
    def stores(self) -> tuple[str, ...]:
        return ("the rows that have not expired",)

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        arrived = self._arrived(tracing)
        hashed = [name for name, kind in arrived.dtypes if name != WEIGHT and "map<" not in kind]
        place = f"xxhash64({', '.join(hashed)})" if hashed else "0L"
        new = arrived.crossJoin(tracing.time()).selectExpr(*arrived.columns, f"_now AS {_AT}", f"{place} AS {HASH}")
        store = tracing.store(self.number, "rows", new)
        change = tracing.cut(union([new, negated(_expired(tracing, store, self.feed))]))
        store.add(change)
        return tracing.relations.delta_of(change, self.step.columns)


@dataclass
class Table(Operator):
    """An input that is a changelog: the last change of each key in an epoch replaces the stored row of that key. With a `ttl` a row
    expires some time after its last change.
    """

    kind: ClassVar[str] = "table"

    feed: Feed = field(kw_only=True)

    @property
    def key(self) -> str:
        return ", ".join(self.feed.key)

    @property
    def stores(self) -> tuple[str, ...]:
        return ("one row per key",)

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        cells = column_names(len(self.feed.columns))
        keys = [f"c{self.feed.columns.index(name)}" for name in self.feed.key]
        new = tracing.cut(self._last_changes(tracing, cells, keys))
        times = [_AT] if self.feed.ttl_ms is not None else []
        present = new.where(f"op IS NULL OR op <> '{DELETE}'").selectExpr(*cells, *times, f"1L AS {WEIGHT}", HASH)
        store = tracing.store(self.number, "rows", present)
        touched = new.selectExpr(*[f"{key} AS r{key}" for key in keys], f"{HASH} AS rh")
        same = " AND ".join([f"{HASH} = rh", *(f"{key} <=> r{key}" for key in keys)])
        old = consolidated(store.at(new.select(HASH))).join(touched.hint("shuffle_hash"), F.expr(same), "left_semi")
        if times:  # a row may expire in the epoch that changes it
            both = union([old, _expired(tracing, store, self.feed)])
            old = grouped(both, f"max({WEIGHT})")
        change = tracing.cut(consolidated(union([present, negated(old)])))
        store.add(change)
        rows = consolidated(change.drop(_AT)) if times else change
        return tracing.relations.delta_of(rows, self.step.columns)

    def _last_changes(self, tracing: Tracing, cells: list[str], keys: list[str]) -> DataFrame:
        """The last change of each key in the epoch, with its time if rows expire."""
        names = self.feed.schema.names
        place = {name: f"a{index}" for index, name in enumerate(names)}
        arrived = _arrival(tracing, self).toDF(*place.values())
        columns = [f"{place[name]} AS c{index}" for index, name in enumerate(self.feed.columns)]
        order = f"coalesce(cast({place[SEQUENCE]} AS bigint), -1L)" if SEQUENCE in names else "0L"
        rows = arrived.selectExpr(*columns, f"{place[op_of(names)]} AS op", f"struct({order}, monotonically_increasing_id()) AS place")
        kept = [*cells, "op"]
        if self.feed.ttl_ms is not None:
            rows, kept = rows.crossJoin(tracing.time()).withColumnRenamed("_now", _AT), [*kept, _AT]
        rows = rows.selectExpr("*", f"xxhash64({', '.join(keys)}) AS {HASH}")
        last = partitioned(rows, tracing.partitions).groupBy(HASH, *keys)
        chosen = last.agg(F.expr(f"max_by(struct({', '.join(kept)}), place) AS row"))
        return chosen.selectExpr(*[f"row.{name} AS {name}" for name in kept], HASH)


def _arrival(tracing: Tracing, operator: Input | Table) -> DataFrame:
    return tracing.arrival(operator.feed.arrives_as or operator.step.input)


def _expired(tracing: Tracing, store: Store, feed: Feed) -> DataFrame:
    """The stored rows whose time is over, each with its weight."""
    old = store.frame.crossJoin(tracing.time()).where(f"{_AT} <= _now - {feed.ttl_ms}L")
    return consolidated(old.select(*store.frame.columns))
