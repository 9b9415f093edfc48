"""How the rows of several inputs arrive in one stream: one query has one frame per epoch, so each row says which input it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.engine.incremental.weights import WEIGHT, column_names
from millstream.plan.changelog import OPS, SEQUENCE, op_of
from millstream.sql.analysed.gate import Carriers
from millstream.sql.catalyst.bridge import SESSION


@dataclass(frozen=True, slots=True)
class Feed:
    """The columns in which an input's rows arrive."""

    schema: StructType
    key: tuple[str, ...] = ()
    """The primary key of a changelog, or of the results of Spark's stream."""
    weighted: bool = False
    """Whether the last column is the weight of a row."""
    append_only: bool = True
    """Whether rows are never removed."""
    ttl_ms: int | None = None
    """How long a row stays after its arrival."""
    arrives_as: str = ""
    """The input as whose rows it arrives, if another feed has the same rows."""
    native: bool = False
    """Whether its rows are results of Spark's stream, which computes a part of the query."""
    windows: Carriers = field(default_factory=dict)
    """The columns with the window, if the rows are those of closed windows: all rows of a window arrive in one epoch."""
    lags_us: Mapping[str, int] = field(default_factory=dict)
    """A column or its field → how far it is behind the watermark in rows to come, at most: `{"c0.start": 10_000_000}`."""

    @property
    def is_changelog(self) -> bool:
        return not self.weighted and bool(op_of(self.schema.names))

    @property
    def plain_schema(self) -> StructType:
        """The schema with sessions as plain values: those of an input have been merged, and Spark would merge them again."""
        return StructType.fromJson(json.loads(json.dumps(self.schema.jsonValue()), object_hook=_without_session))

    @property
    def is_keyed(self) -> bool:
        """Whether its key is known to identify a row."""
        return self.is_changelog or self.native

    @property
    def keeps_rows(self) -> bool:
        """Whether its rows are stored: to know which row a change replaces, or when a row arrived."""
        return self.is_changelog or self.ttl_ms is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the input is."""
        if self.weighted:
            return tuple(self.schema.names[:-1])
        return tuple(name for name in self.schema.names if name not in (*OPS, SEQUENCE)) if self.is_changelog else tuple(self.schema.names)


def _without_session(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != SESSION}


def of_weights(schema: StructType, append_only: bool = False) -> Feed:
    """An input whose rows have a weight."""
    return Feed(StructType(list(schema.fields)).add(WEIGHT, "long"), weighted=True, append_only=append_only)


def arrivals(frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all inputs. Those of several inputs are tagged with their number, each in its own struct."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    tagged = [_tagged(frame, index) for index, frame in enumerate(frames.values())]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), tagged)


def _tagged(frame: DataFrame, index: int) -> DataFrame:
    names = column_names(len(frame.columns))
    return frame.toDF(*names).selectExpr(f"{index} AS _part", f"struct({', '.join(names)}) AS _p{index}")


def arrived(frame: DataFrame, inputs: list[str], name: str, count: int) -> DataFrame:
    """The rows of one input, with its columns as `c0`, `c1`, …"""
    if len(inputs) == 1:
        return frame.toDF(*column_names(count))
    index = inputs.index(name)
    return frame.where(f"_part = {index}").selectExpr(*[f"_p{index}.{column} AS {column}" for column in column_names(count)])
