"""The result of a query, kept up to date epoch by epoch.

Epoch `e` reads version `e - 1` of the operators' stores and makes version `e`, so an epoch can be repeated. A version is a list of
fragments for each store: RDDs whose rows are held in memory or on disk. Versions before the last finished epoch are freed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from millstream.checkpoint.incremental import Part
from millstream.engine.incremental.analysis import Analysis
from millstream.engine.incremental.compilation import Compilation, Encode
from millstream.engine.incremental.leaving.rules import LeavingRules, leaving_rules
from millstream.engine.incremental.leaving.schedule import LeavingSchedule
from millstream.engine.incremental.levels import Levels
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.inputs import FixedRows
from millstream.engine.incremental.stored_rows import StoredRows, Version
from millstream.engine.incremental.tracing import SMALL, TIME, CompiledEpoch, Form, Piece, Tracing, Work
from millstream.engine.incremental.weights import WEIGHT, consolidated, repeated
from millstream.sql.catalyst.bridge import Bridge, Rdd

_FRAGMENTS = 8
"""The fragments of so many epochs are merged into one."""
_LARGE_BYTES = 2 << 20
"""After an epoch that added more, the next one runs with generated code."""


class View:
    """The result of a query over inputs that change."""

    def __init__(self, analysis: Analysis, partitions: int = 2, *, final: bool = False) -> None:
        """With `final` the result is returned once, by an epoch that ends the input."""
        self.compilation = Compilation(analysis, partitions, final=final)
        self.bridge, self._partitions = self.compilation.bridge, partitions
        self._compiled = CompiledEpoch()
        self._merging: dict[str, Piece] = {}
        self.versions: dict[int, Version] = {}
        self._slots: dict[str, Rdd] = {}
        self._levels = Levels()
        self._pinned: Version = {}
        """The version that a snapshot is written from."""
        self._last_bytes = 0
        self._form = SMALL
        """What the next epoch is compiled for, if it is large: as the last one was."""
        self._bases: dict[int, Rdd] = {}
        """The id of a fragment that is not held → the held rows from which it is computed."""
        self._sizes: dict[int, int] = {}
        """The id of a fragment → its bytes; they do not change."""
        self._schedule = LeavingSchedule({})

    @property
    def names(self) -> tuple[str, ...]:
        return self.compilation.names

    @property
    def operators(self) -> list[Operator]:
        return self.compilation.operators

    @property
    def final(self) -> bool:
        return self.compilation.final

    def find_keys(self) -> list[tuple[str, ...]]:
        return self.compilation.find_keys()

    def compile(self, encode: Encode, key: tuple[str, ...] | None = None, claimed_by: str = "") -> None:
        """Compile an epoch: see `Compilation.compile`."""
        self._compiled = self.compilation.compile(encode, key, claimed_by)
        self.versions = {-1: self.empty_version()}
        self._schedule = LeavingSchedule(self.leaving)

    @cached_property
    def leaving(self) -> LeavingRules:
        """The stores whose rows leave when the watermark has passed them."""
        return leaving_rules(self.compilation)

    @property
    def stored_rows(self) -> StoredRows:
        return StoredRows(self.bridge, self._compiled, self._partitions)

    # Running

    def step(self, epoch: int, frame: DataFrame, *, ends: bool = False, time_ms: int = 0) -> DataFrame:
        """The changes of the result in an epoch, from the rows that arrived. They are computed by the job that reads them. `ends`: no more
        rows will come. `time_ms` is the time of the epoch, by which rows expire.
        """
        self._compiled = compiled = self.compilation.epoch_for(self._form if self._last_bytes > _LARGE_BYTES else SMALL)
        bridge, before = self.bridge, self._with_one_fragment(epoch - 1, compiled.whole)
        bridge.checkpoint_all_ancestors()
        self._slots = slots = {"arrivals": self._arrivals(frame)}
        if compiled.readers(TIME):
            slots[TIME] = bridge.rdd(bridge.spark.range(time_ms, time_ms + 1, 1, 1))
        slots |= {each.slot: self._fixed(each, epoch) for each in self.operators if isinstance(each, FixedRows)}
        slots |= {f"store:{name}": bridge.union_rdd(list(fragments), self._partitions) for name, fragments in before.items()}
        for piece in compiled.pieces:
            slots[piece.slot] = bridge.hold(piece.output, self._run(piece)) if piece.held else self._run(piece)
        self.versions[epoch] = {name: (*before[name], slots[slot]) for name, slot in compiled.added.items()}
        self.versions[epoch] |= {name: (slots[slot],) for name, slot in compiled.whole.items()}
        self._bases |= {int(slots[slot].id()): slots[compiled.held_slot(slot)] for slot in compiled.whole.values()}
        if self.final and ends:
            slots[compiled.output] = self._final_result(epoch)
        return self.result_of(slots[compiled.output], frame.sparkSession)

    def _final_result(self, epoch: int) -> Rdd:
        store = self.compilation.final_store
        rows = self.bridge.union_rdd(list(self.versions[epoch][store]), self._partitions)
        kept = self.bridge.frame(self.bridge.leaf(self._compiled.schemas[store], rows))
        final = self.compilation.final_rows(repeated(consolidated(kept)))
        return self.bridge.hold(self._compiled.pieces[-1].output, self.bridge.rdd(final))

    def _arrivals(self, frame: DataFrame) -> Rdd:
        rows = self.bridge.rdd(frame)
        several = self._compiled.readers("arrivals") > 1
        return self.bridge.hold(frame._jdf.queryExecution().analyzed().output(), rows) if several else rows

    def _run(self, piece: Piece, rows: Rdd | None = None) -> Rdd:
        slots = self._slots if rows is None else {"rows": rows}
        return self.bridge.bound(piece.plan, [(leaf, slots[slot]) for leaf, slot in piece.leaves]).execute()

    def result_of(self, rows: Rdd, spark: SparkSession) -> DataFrame:
        """The rows of a result as a frame of a session, under the names of the query."""
        bridge, output = Bridge(spark), self._compiled.pieces[-1].output
        more = [str(each.name()) for each in bridge.items(output)][len(self.names) :]
        renamed = [each.withName(name) for each, name in zip(bridge.items(output), (*self.names, *more), strict=True)]
        return bridge.frame(bridge.leaf(bridge.seq(renamed), rows))

    def empty_result(self, spark: SparkSession) -> DataFrame:
        return self.result_of(self.bridge.empty_rdd(), spark)

    def _fixed(self, operator: FixedRows, epoch: int) -> Rdd:
        bridge = self.bridge
        items = [*bridge.items(operator.step.plan.output()), bridge.alias(bridge.expression("1L"), WEIGHT)]
        rows = bridge.frame(bridge.project(items, operator.step.plan))
        return bridge.rdd(rows if epoch == 0 else rows.where("false"))

    # Versions

    def added(self) -> DataFrame:
        """What the epoch has added to all stores, and its result, as one frame; the last number is the result's."""
        assert self._compiled.log is not None
        piece = self._compiled.log
        return self.bridge.frame(self.bridge.leaf(piece.output, self._run(piece)))

    def measure(self, epoch: int) -> int:
        """Look up the size of what the epoch has held, and return the size of what it has added."""
        fragments = set(self._held(self.versions[epoch]))
        slots = {self._compiled.held_slot(slot) for slot in (*self._compiled.added.values(), self._compiled.output)}
        added = {int(self._slots[slot].id()) for slot in slots if slot in self._slots}
        known = {number: size for number, size in self._sizes.items() if number in fragments}
        found = self.bridge.held_sizes((fragments | added) - known.keys())
        self._sizes = known | {number: size for number, size in found.items() if number in fragments}
        self._last_bytes = sum(found.get(number, 0) for number in added)
        return self._last_bytes

    def rows_before(self, store: str, epoch: int) -> int:
        """The rows of a store before an epoch, counted as they are and not by their weights."""
        return self._levels.rows_of(self.versions[epoch - 1][store]) if epoch - 1 in self.versions else 0

    def bytes_of(self, store: str, epoch: int) -> int:
        """The size of a store's rows after an epoch, as last measured."""
        return sum(self._sizes.get(number, 0) for number in self._held({store: self.versions[epoch][store]}))

    def _held(self, *versions: Version) -> dict[int, Rdd]:
        """The held rows of versions, by their ids."""
        found = {int(rdd.id()): rdd for version in versions for rdds in version.values() for rdd in rdds}
        bases = [self._bases[number] for number in found if number in self._bases]
        return {number: rdd for number, rdd in found.items() if number not in self._bases} | {int(rdd.id()): rdd for rdd in bases}

    def _free(self, rdds: Mapping[int, Rdd]) -> None:
        """Free rows that neither a version nor a snapshot needs."""
        needed = self._held(*self.versions.values(), self._pinned)
        for number, rdd in rdds.items():
            if number not in needed:
                rdd.unpersist(False)

    def state(self, epoch: int, watermark_us: int = 0) -> DataFrame:
        """The rows of all stores after an epoch, as one frame like `added`, without a result and what the watermark has passed."""
        rules = self.leaving if watermark_us else {}
        return self.stored_rows.state(self.versions[epoch], {name: rule.staying(watermark_us) for name, rule in rules.items()})

    def parts(self) -> tuple[Part, ...]:
        """The parts of a frame of stored rows."""
        return self.stored_rows.parts(self.compilation.kinds)

    def empty_version(self) -> Version:
        return self.stored_rows.empty_version()

    def pin(self, epoch: int, watermark_us: int = 0) -> DataFrame:
        """The rows of all stores after an epoch. They stay, whatever later epochs merge and free, until `unpin`."""
        self._pinned = self.versions[epoch]
        return self.state(epoch, watermark_us)

    def unpin(self) -> None:
        pinned, self._pinned = self._pinned, {}
        self._free(self._held(pinned))

    def adopt(self, epoch: int, version: Version, rows: Mapping[str, int] | None = None) -> None:
        """Continue from stored rows. `rows` is their number for each store, if it is known."""
        self.versions = {epoch: version}
        for name, (fragment,) in version.items() if rows is not None else ():
            self._levels.merge((), fragment, rows.get(name, 0) if rows else 0)

    def finish(
        self, epoch: int, changed: Mapping[str, int] | None = None, kept: Mapping[str, int] | None = None, watermark_us: int = 0
    ) -> dict[str, int]:
        """Forget what only this epoch or earlier versions needed, and merge fragments of many epochs. `changed` is the number of rows that
        the epoch has added to each store, and `kept` the number that it has, if they are known. No rows to come belong to windows that
        the watermark has passed. Returns the number of rows in the stores that have lost some for that reason.
        """
        self._form = self._form.after(changed, kept) if changed is not None and kept is not None else Form(large=True)
        for name, fragments in self.versions[epoch].items():
            if name in self._compiled.whole and len(fragments) == 1:
                self._levels.merge((), fragments[-1], kept[name] if kept is not None else 0)
            else:
                self._levels.add(fragments[-1], changed[name] if changed is not None else None)
        before = self._held(*self.versions.values())
        held = [rdd for slot, rdd in self._slots.items() if slot.startswith("piece:") or slot == "arrivals"]
        due = self._schedule.due(kept, watermark_us, _FRAGMENTS) if kept is not None else []
        left = {name: self._without_passed(name, self.versions[epoch][name], watermark_us) for name in due}
        self._schedule.record({name: rows for name, (_, rows) in left.items()}, watermark_us)
        self.versions = {
            epoch: {
                name: (left[name][0],) if name in left else self._merged(name, fragments)
                for name, fragments in self.versions[epoch].items()
            }
        }
        self._free(before | {int(rdd.id()): rdd for rdd in held})
        if self._bases:
            used = {int(rdd.id()) for version in (self.versions[epoch], self._pinned) for rdds in version.values() for rdd in rdds}
            self._bases = {number: rdd for number, rdd in self._bases.items() if number in used}
        self._slots = {}
        return {name: rows for name, (_, rows) in left.items()}

    def _without_passed(self, name: str, fragments: tuple[Rdd, ...], watermark_us: int) -> tuple[Rdd, int]:
        """The fragments of a store as one, without rows that the watermark has passed, and the number of its rows."""
        merge, staying = self._merge_of(name), self.leaving[name].staying(watermark_us)
        piece = Tracing(self.bridge, self._partitions).piece_over(self._compiled.schemas[name], lambda rows: merge(rows.where(staying)))
        rows = self.bridge.hold_copies(piece.output, self._run(piece, self.bridge.union_rdd(list(fragments), self._partitions)))
        kept = self.bridge.frame(self.bridge.leaf(piece.output, rows))
        found = kept.selectExpr("count(*)", f"coalesce(sum({WEIGHT}), 0L)").head()  # this job computes the rows
        assert found is not None
        self._levels.merge(fragments, rows, int(found[0]))
        return rows, int(found[1])

    def _merge_of(self, name: str) -> Work:
        return _as_they_are if name in self._compiled.appended else self._compiled.merge_of(name)

    def _merged(self, name: str, fragments: tuple[Rdd, ...]) -> tuple[Rdd, ...]:
        count = self._levels.due(fragments, _FRAGMENTS, only_grows=name in self._compiled.appended)
        return self._with_merged(name, fragments, count) if count else fragments

    def _with_one_fragment(self, epoch: int, stores: Collection[str]) -> Version:
        """A version; each of the stores has one fragment, in which no rows cancel each other."""
        several = {name: fragments for name, fragments in self.versions[epoch].items() if name in stores and len(fragments) > 1}
        for name, fragments in several.items():
            self.versions[epoch] = self.versions[epoch] | {name: self._with_merged(name, fragments, len(fragments))}
            self._free(self._held({name: fragments}))
        return self.versions[epoch]

    def _with_merged(self, name: str, fragments: tuple[Rdd, ...], count: int) -> tuple[Rdd, ...]:
        """The fragments, with the newest of them as one."""
        older, newer = fragments[:-count], fragments[-count:]
        if name not in self._merging:
            self._merging[name] = Tracing(self.bridge, self._partitions).piece_over(self._compiled.schemas[name], self._merge_of(name))
        piece = self._merging[name]
        rows = self.bridge.hold_copies(piece.output, self._run(piece, self.bridge.union_rdd(list(newer), self._partitions)))
        self._levels.merge(newer, rows, int(rows.count()))  # a job of its own: only then can the fragments be forgotten
        return (*older, rows)

    def close(self) -> None:
        """Free all held rows."""
        for rdd in self._held(*self.versions.values(), self._pinned).values():
            rdd.unpersist(False)
        self.versions, self._slots, self._pinned = {}, {}, {}


def _as_they_are(frame: DataFrame) -> DataFrame:
    return frame
