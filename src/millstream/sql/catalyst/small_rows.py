"""Collects the rows of a small epoch into the driver, with the one job that computes them.

Spark cannot limit a collected result by its bytes, so the frame is guarded: of each partition only the first rows come back, up to a number
and to a size, and rows without values tell that there were others. All rows are computed in any case, so that
Spark's counts and its state are those of the whole epoch.
What a sink computes from an epoch's rows is the same in every epoch. It is planned once, over a leaf without rows, and the rows of an epoch
are bound to the leaf: analysing and planning would take longer than the job.
Rows come as Arrow batches through Py4J: for small results that is as fast as a socket of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.sql.catalyst.bridge import Bridge, Plan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SMALL_BYTES = 4 << 20
"""The most bytes of a small epoch."""
_ROWS, _LEAST_ROWS = 16_384, 512
"""The most rows of a small epoch, divided among its partitions; and the least for one of them."""
_ROW_BYTES = 16 << 10
"""The most bytes of a row, and the least that a partition may have."""
_MANY = 64
"""Partitions of an epoch whose number is not known."""
_MOST_PAUSE = 64
"""Epochs."""
_PLACE_BITS = (1 << 33) - 1
"""`monotonically_increasing_id` counts the rows of a partition in these bits."""
_ROW, _PLACE, _SIZE = "_millstream_row", "_millstream_index", "_millstream_size"

Build = Callable[["DataFrame"], tuple["DataFrame", "Column"]]
"""What a sink computes from rows, and the size of the result in bytes, row by row. It depends on nothing but the columns of the rows."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """What comes back of each partition."""

    rows: int
    bytes: int

    @classmethod
    def of(cls, partitions: int) -> _Limits:
        return cls(max(_LEAST_ROWS, _ROWS // partitions), max(_ROW_BYTES, SMALL_BYTES // partitions))


@dataclass(slots=True)
class SmallRows:
    """The small epochs of one sink. It expects of the next epoch that it is like the last one. An epoch that is collected in vain is
    computed twice: after one, the next epoch is not tried; after several in a row, ever more.
    """

    build: Build
    expected: bool = True
    """Whether the next epoch is expected to be small, by the size of the last one."""
    _waiting: int = 0
    """Epochs that are not tried."""
    _pause: int = 1
    _partitions: int = 0
    """The most that an epoch has had; 0: not known."""
    _planned: list[_Planned] = field(default_factory=list)
    """The last plan, if there is one."""

    def is_tried(self) -> bool:
        """Whether to collect the next epoch. Asked once for each."""
        self._waiting = max(0, self._waiting - 1)
        return self.expected and not self._waiting

    def learn(self, size: int) -> None:
        """Learn the bytes of an epoch. After a large one, an epoch must be much smaller before the next one is expected to be small."""
        self.expected = size <= (SMALL_BYTES if self.expected else SMALL_BYTES // 4)

    def note_vain(self) -> None:
        """What was collected cannot be used."""
        self._waiting, self._pause = self._pause + 1, min(2 * self._pause, _MOST_PAUSE)

    def collect(self, frame: DataFrame) -> pa.Table | None:
        """What is computed from the rows, in their order, if it is small. None: it must be computed in another way."""
        found = self._collect(frame)
        if found is None:
            self.note_vain()
        else:
            self._pause = 1
        return found

    def _collect(self, frame: DataFrame) -> pa.Table | None:
        bridge = Bridge(frame.sparkSession)
        analysed = bridge.analysed_as_is(frame)
        if frame.is_cached or not bridge.is_leaf(analysed):  # a plan that is bound to rows would not read those that are kept
            guarded = _guard(*self.build(frame), _Limits.of(self._partitions or _MANY))
            found = self._receive(guarded._jdf.toArrowBatchRdd(), _schema(guarded))
            bridge.complete_observations(guarded)
            return found
        self._partitions = max(self._partitions, bridge.partitions(analysed), 1)
        limits = _Limits.of(self._partitions)
        planned = next((each for each in self._planned if each.fits(analysed, limits)), None) or self._plan(bridge, analysed, limits)
        return self._receive(planned.bind(bridge, analysed), planned.schema)

    def _plan(self, bridge: Bridge, leaf: Plan, limits: _Limits) -> _Planned:
        empty = bridge.frame(bridge.leaf(leaf.output(), bridge.empty_rdd()))
        guarded = _guard(*self.build(empty), limits)
        physical = bridge.physical(guarded)
        (scan,) = bridge.scans(physical)
        planned = _Planned(limits, leaf.schema(), guarded._jdf, physical, scan, _schema(guarded))
        self._planned = [planned]
        return planned

    def _receive(self, rdd: Any, schema: pa.Schema) -> pa.Table | None:
        batches = rdd.collect()
        self._partitions = max(self._partitions, int(rdd.getNumPartitions()))
        parts = [pa.ipc.read_record_batch(pa.py_buffer(batches[number]), schema) for number in range(len(batches))]
        rows = pa.Table.from_batches(parts, schema).column(_ROW)
        if rows.null_count:
            self.expected = False
            return None
        found = pa.Table.from_struct_array(rows)
        self.learn(found.nbytes)
        return found if found.nbytes <= SMALL_BYTES else None


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan over a leaf without rows."""

    limits: _Limits
    columns: Any
    """Spark's schema of the rows."""
    frame: Any
    physical: Plan
    scan: Plan
    schema: pa.Schema
    """The schema of the result."""

    def fits(self, leaf: Plan, limits: _Limits) -> bool:
        return self.limits == limits and bool(self.columns.equals(leaf.schema()))

    def bind(self, bridge: Bridge, leaf: Plan) -> Any:
        """The Arrow batches of an epoch's rows."""
        return self.frame.toArrowBatchRdd(bridge.bound(self.physical, [(self.scan, leaf.rdd())]))


def _guard(frame: DataFrame, size: Column, limits: _Limits) -> DataFrame:
    """The first rows of each partition, and a null for those that are left out: one for all that are too many, one for each that is
    large. A row may be the larger the earlier it comes: so the sum of a partition is limited without adding up.
    """
    from pyspark.sql import functions as F

    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PLACE_BITS))
    counted = frame.select(F.struct("*").alias(_ROW), place.alias(_PLACE), size.alias(_SIZE)).where(F.col(_PLACE) <= limits.rows)
    fits = (F.col(_SIZE) <= _ROW_BYTES) & (F.col(_SIZE) * (F.col(_PLACE) + 1) <= limits.bytes)
    return counted.select(F.when((F.col(_PLACE) < limits.rows) & fits, F.col(_ROW)).alias(_ROW))


def _schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)
