"""Operators are compiled once and run every epoch.

Each operator is traced over leaves without rows. Wherever rows are used twice or kept as state, the plan is cut: what stands above the cut
becomes a piece, a physical plan whose leaves are bound to the rows of an epoch. So an epoch analyses, optimises and plans nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from millstream.engine.incremental.arrivals import arrivals, arrived
from millstream.engine.incremental.relations import REQUIRED, Relations
from millstream.engine.incremental.weights import HASH, consolidated, partitioned, restricted
from millstream.sql.catalyst.bridge import Bridge, Plan

Work = Callable[[DataFrame], DataFrame]
TIME = "time"
"""The slot with the time of the epoch."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an epoch is compiled for. The answer does not depend on it."""

    large: bool = False
    """Many rows: Spark generates code, which takes longer to begin."""
    compact: frozenset[str] = frozenset()
    """Stores that are not much larger than what an epoch changes in them: they are read and written as a whole."""
    idle: frozenset[str] = frozenset()
    """Stores to which no rows are expected to be added."""

    def after(self, changed: Mapping[str, int], kept: Mapping[str, int]) -> Form:
        """The form for an epoch of many rows like the last one, which has changed and left so many rows in the stores. A store that is
        compact stays so until it has twice the size.
        """
        most: dict[str, int] = {}
        for name, rows in changed.items():
            most[operator_of(name)] = max(most.get(operator_of(name), 0), rows)
        limits = {name: most[operator_of(name)] * (2 if name in self.compact else 1) for name in changed}
        compact = frozenset(name for name, limit in limits.items() if 0 < kept[name] <= limit)
        return Form(True, compact, frozenset(name for name, rows in changed.items() if not rows))

    def only(self, compact: Collection[str], idle: Collection[str]) -> Form:
        """The form as far as it matters to some stores."""
        return Form(self.large, self.compact & frozenset(compact), self.idle & frozenset(idle))


SMALL = Form()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an epoch's work."""

    slot: str
    """The name of its rows."""
    plan: Plan
    """The physical plan."""
    leaves: tuple[tuple[Plan, str], ...]
    """Its leaves, and the slots that they read."""
    output: Any
    held: bool = True
    """Whether its rows are kept once they are computed; else whoever reads them computes them."""


@dataclass
class CompiledEpoch:
    """The pieces of an epoch's work, and the stores that it changes."""

    pieces: list[Piece] = field(default_factory=list)
    added: dict[str, str] = field(default_factory=dict)
    """Store → the slot whose rows an epoch adds to it."""
    whole: dict[str, str] = field(default_factory=dict)
    """Store → the slot that has all of its rows after an epoch, if the epoch replaces them."""
    appended: set[str] = field(default_factory=set)
    """Stores from which rows are never removed."""
    merging: dict[str, Work] = field(default_factory=dict)
    """Store → how its fragments are merged, where that is not by cancelling equal rows."""
    asked_compact: set[str] = field(default_factory=set)
    asked_idle: set[str] = field(default_factory=set)
    """Stores of operators that work differently if they are compact, or idle."""
    schemas: dict[str, Any] = field(default_factory=dict)
    """Store → the columns of its rows."""
    output: str = ""
    """The slot of the result's changes."""
    log: Piece | None = None
    """What is written of an epoch: the changes of all stores and the result in one frame."""

    def merge_of(self, store: str) -> Work:
        """How the rows of a store are merged."""
        return self.merging.get(store, consolidated)

    def readers(self, slot: str) -> int:
        """How many leaves read a slot."""
        return sum(read == slot for piece in self.pieces for _, read in piece.leaves)

    def held_slot(self, slot: str) -> str:
        """The slot from whose rows, which are held, those of a slot are computed."""
        known = {piece.slot: piece for piece in self.pieces}
        while slot in known and not known[slot].held:
            slot = known[slot].leaves[0][1]
        return slot

    @property
    def parts(self) -> list[str]:
        """The parts of a frame of stored rows: the stores and, last, the result. A query without state has its result twice, since rows of
        one part alone would not be tagged.
        """
        return [*(self.schemas or (" ",)), ""]


class Store:
    """The rows that an operator keeps, as its step sees them: those before the epoch."""

    def __init__(self, tracing: Tracing, name: str, frame: DataFrame) -> None:
        self._tracing, self._name, self.frame = tracing, name, frame

    def at(self, hashes: DataFrame) -> DataFrame:
        """The rows of the touched keys."""
        return restricted(self.frame, hashes)

    def add(self, change: DataFrame) -> None:
        """Keep a change; it is the result of a cut."""
        self._tracing.epoch.added[self._name] = self._tracing.slot_of(change)

    def replace(self, rows: DataFrame) -> None:
        """Keep these rows and no others; they are the result of a cut."""
        self._tracing.epoch.whole[self._name] = self._tracing.slot_of(rows)

    def only_grows(self) -> None:
        """No row of it is ever removed."""
        self._tracing.epoch.appended.add(self._name)

    def merge_with(self, work: Work) -> None:
        """Merge its fragments in this way, and not by cancelling equal rows."""
        self._tracing.epoch.merging[self._name] = work


class Tracing:
    """What operators need while they are traced."""

    def __init__(self, bridge: Bridge, partitions: int, form: Form = SMALL) -> None:
        self.bridge, self.partitions, self.relations, self.form = bridge, partitions, Relations(bridge), form
        self.epoch = CompiledEpoch()
        self._slots: dict[int, str] = {}
        self._inputs: dict[str, int] = {}
        self._output: Any = None
        self._idle: set[str] = set()
        """Slots in which no rows are expected."""

    def expect(self, frame: DataFrame, inputs: dict[str, int]) -> None:
        """Say how rows arrive: a frame like theirs, and the inputs with the number of their columns."""
        self._output, self._inputs = frame._jdf.queryExecution().analyzed().output(), inputs

    def arrival(self, name: str) -> DataFrame:
        """The rows of an input that arrived in the epoch, with its columns as `c0`, `c1`, …"""
        own = self.bridge.seq([each.newInstance() for each in self.bridge.items(self._output)])
        return arrived(self.leaf("arrivals", own, keyed=False), list(self._inputs), name, self._inputs[name])

    def time(self) -> DataFrame:
        """One row with the time of the epoch in milliseconds, `_now`."""
        output = self.bridge.spark.range(0)._jdf.queryExecution().analyzed().output()
        return self.leaf(TIME, self.bridge.seq([each.newInstance() for each in self.bridge.items(output)]), keyed=False).toDF("_now")

    def finish(self, result: DataFrame) -> None:
        """The last piece: the result's changes."""
        piece = self._piece(f"piece:{len(self.epoch.pieces)}", result)
        self.epoch.pieces.append(piece)
        self.epoch.output = piece.slot

    def finish_log(self) -> None:
        """The piece that is written."""
        frames = {}
        for part in self.epoch.parts:
            output = self.epoch.schemas[part] if part.strip() else self.epoch.pieces[-1].output
            slot = self.epoch.added[part] if part.strip() else self.epoch.output
            own = self.bridge.seq([self.bridge.nullable(each) for each in self.bridge.items(output)])
            frames[part] = self.leaf(slot, own, keyed=False)
        self.epoch.log = self._piece("log", arrivals(frames))

    def leaf(self, slot: str, output: Any, keyed: bool) -> DataFrame:
        """A frame that reads the rows of a slot."""
        rdd = self.bridge.empty_rdd()
        self._slots[int(rdd.id())] = slot
        hashes = [each for each in self.bridge.items(output) if each.name() == HASH]
        return self.bridge.frame(self.bridge.leaf(output, rdd, hashes[0] if keyed else None, self.partitions))

    def slot_of(self, frame: DataFrame) -> str:
        return self._slots[self.bridge.rdd_id(frame._jdf.logicalPlan())]

    def store(self, operator: int, name: str, like: DataFrame) -> Store:
        """A store of an operator, whose rows have the columns of a frame."""
        full = store_name(operator, name)
        output = self.bridge.with_nullability(like._jdf.queryExecution().analyzed().output(), REQUIRED)
        self.epoch.schemas[full] = output
        return Store(self, full, self.leaf(f"store:{full}", output, keyed=True))

    def is_compact(self, operator: int, name: str) -> bool:
        self.epoch.asked_compact.add(store_name(operator, name))
        return store_name(operator, name) in self.form.compact

    def is_idle(self, operator: int, name: str) -> bool:
        self.epoch.asked_idle.add(store_name(operator, name))
        return store_name(operator, name) in self.form.idle

    def expect_none(self, frame: DataFrame) -> None:
        """No rows are expected in the result of a cut: a join with it reads its other side only if there are some."""
        self._idle.add(self.slot_of(frame))

    def cut(self, frame: DataFrame, *, held: bool = True) -> DataFrame:
        """End a piece: its rows are computed once per epoch, and can be used several times and as state. Rows that are not held are
        computed by each reader.
        """
        keyed = HASH in frame.columns
        physical = self._physical(frame, keyed)
        if keyed and not self.bridge.is_partitioned_by(physical, HASH, self.partitions):
            frame = partitioned(frame, self.partitions)
            physical = self._physical(frame, keyed)
        slot = f"piece:{len(self.epoch.pieces)}"
        piece = self._piece(slot, frame, physical, held=held)
        self.epoch.pieces.append(piece)
        return self.leaf(slot, self.bridge.with_nullability(piece.output, REQUIRED), keyed)

    def _physical(self, frame: DataFrame, keyed: bool) -> Plan:
        found = self.bridge.physical(frame)
        return self.bridge.with_narrow_exchange(found, HASH, self.partitions) if keyed else found

    def _piece(self, slot: str, frame: DataFrame, physical: Plan | None = None, *, held: bool = True) -> Piece:
        idle = [number for number, read in self._slots.items() if read in self._idle]
        physical = physical or self.bridge.physical(frame)
        if idle:
            physical = self.bridge.with_lazy_joins(physical, idle)
        scans = [
            (scan, self._slots[self.bridge.rdd_id(scan)]) for scan in self.bridge.scans(physical) if self.bridge.rdd_id(scan) in self._slots
        ]
        return Piece(slot, physical, tuple(scans), frame._jdf.queryExecution().analyzed().output(), held)

    def piece_over(self, output: Any, work: Work) -> Piece:
        """A piece of its own over one slot, `rows`: for merging stores."""
        frame = work(self.leaf("rows", output, keyed=True))
        return self._piece("done", frame)


def operator_of(store: str) -> str:
    """The number of the operator that a store belongs to, as text."""
    return store.partition(".")[0]


def store_name(operator: int, name: str) -> str:
    return f"{operator}.{name}"
