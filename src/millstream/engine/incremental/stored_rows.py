"""The form in which rows are written: the rows of all stores and of the result are one frame, whose rows say which part they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.checkpoint.incremental import Part
from millstream.engine.incremental.arrivals import arrivals, arrived
from millstream.engine.incremental.tracing import CompiledEpoch, operator_of
from millstream.engine.incremental.weights import partitioned
from millstream.sql.catalyst.bridge import Bridge, Rdd

Version = dict[str, tuple[Rdd, ...]]
"""Store → its fragments."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Converts between the fragments of stores and frames that are written and read back."""

    bridge: Bridge
    compiled: CompiledEpoch
    partitions: int

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(self.compiled.schemas)

    def parts(self, kinds: Mapping[int, str]) -> tuple[Part, ...]:
        """The parts of the frame. `kinds` are the operators by their numbers."""
        return tuple(Part(part, self._names(part), kinds[int(operator_of(part))] if part.strip() else "") for part in self.compiled.parts)

    @property
    def schema(self) -> StructType:
        assert self.compiled.log is not None
        return self.bridge.frame(self.bridge.leaf(self.compiled.log.output, self.bridge.empty_rdd())).schema

    def state(self, version: Version, conditions: Mapping[str, str] | None = None) -> DataFrame:
        """The rows of all stores, without a result; of some stores, those for which a condition is true."""
        return self._frame(version, conditions or {})

    def _frame(self, rows: Mapping[str, tuple[Rdd, ...]], conditions: Mapping[str, str]) -> DataFrame:
        bridge, frames = self.bridge, {}
        for name in self.compiled.parts:
            fragments = rows[name] if name in rows else (bridge.empty_rdd(),)
            own = [bridge.nullable(each) for each in bridge.items(self._output_of(name))]
            frame = bridge.frame(bridge.leaf(bridge.seq(own), bridge.union_rdd(list(fragments), self.partitions)))
            frames[name] = frame.where(conditions[name]) if name in conditions else frame
        return arrivals(frames)

    def part(self, frame: DataFrame, name: str) -> DataFrame:
        """The rows of a store that a frame holds, or of the result, which has no name."""
        columns = self._names(name)
        return arrived(frame, self.compiled.parts, name, len(columns)).toDF(*columns)

    def empty_version(self) -> Version:
        return {name: (self._no_rows(output),) for name, output in self.compiled.schemas.items()}

    def _no_rows(self, output: Any) -> Rdd:
        """An empty fragment, partitioned as all are."""
        empty = self.bridge.frame(self.bridge.leaf(output, self.bridge.empty_rdd()))
        return self.bridge.hold(output, self.bridge.rdd(partitioned(empty, self.partitions)))

    def fragment(self, name: str, rows: DataFrame) -> Rdd:
        """Rows that were read from files, as a fragment of a store."""
        return self.bridge.hold(self.compiled.schemas[name], self.bridge.rdd(partitioned(rows, self.partitions)))

    def _names(self, part: str) -> tuple[str, ...]:
        return tuple(str(each.name()) for each in self.bridge.items(self._output_of(part)))

    def _output_of(self, part: str) -> Any:
        return self.compiled.schemas[part] if part.strip() else self.compiled.pieces[-1].output
