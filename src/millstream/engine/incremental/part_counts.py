"""Counts the rows of the parts of a frame of stored rows while it is written: no job runs only for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from millstream.checkpoint.incremental import Part
from millstream.engine.incremental.weights import WEIGHT


def counted_in(table: pa.Table, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with the counts of a table."""
    found, tags = [], table["_part"]
    for place, part in enumerate(parts):
        rows = pc.sum(pc.equal(tags, place)).as_py() or 0
        weights = pc.struct_field(table[f"_p{place}"], _weight_in(part)) if WEIGHT in part.columns and rows else None
        found.append(replace(part, rows=rows, kept=(pc.sum(weights).as_py() or 0) if weights is not None else 0))
    return tuple(found)


class Counting:
    """The counts of a frame that workers write, which Spark reports when they are done."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self._parts, self._observation = parts, Observation()

    def observe(self, frame: DataFrame) -> DataFrame:
        counts: list[Any] = []
        for place, part in enumerate(self._parts):
            counts.append(F.expr(f"count_if(_part = {place}) AS rows{place}"))
            if WEIGHT in part.columns:
                counts.append(F.expr(f"coalesce(sum(_p{place}.{_weight_in(part)}), 0L) AS kept{place}"))
        return frame.observe(self._observation, *counts)

    def read(self) -> tuple[Part, ...]:
        found = self._observation.get
        return tuple(replace(part, rows=found[f"rows{place}"], kept=found.get(f"kept{place}", 0)) for place, part in enumerate(self._parts))


def _weight_in(part: Part) -> str:
    """The columns of a part have the names of their places in the written frame."""
    return f"c{part.columns.index(WEIGHT)}"
