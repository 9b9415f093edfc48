"""Traces of single records on Spark: the column `_traceparent`, and taps that note when a traced record passes a node.

All ids follow from the record's position in its source and from the names of pipeline and source, so that a repeated epoch gives the same
ones. A tap is a condition that is always true; it does work for traced records only. Spark calls it non-deterministic and therefore neither
moves nor copies it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.types import DataType, MapType, StructType, VariantType

from millstream.plan.components import POSITION, REJECT
from millstream.plan.expressions import quote_column
from millstream.plan.nodes import SourceNode
from millstream.plan.tracing import TRACED, Sampling, sampling_of

RECORDS = 1000
"""Records per node and epoch that are reported, at most. The column of the others is as good."""
PER_SECOND = 250
"""Records per node and second that are reported in the long run."""
CHARACTERS = 250_000
"""What a task notes about them, at most: the notes come back with its result, and Spark limits the size of results."""
_PARENT = "_millstream_parent"


@dataclass(frozen=True)
class Taps:
    """The taps of one query, and the log that they write to."""

    spark: SparkSession
    lengths: dict[str, int] = field(default_factory=dict)
    """Node → the length of the previews of its records."""
    log: Any = field(init=False)
    _taps: dict[str, Any] = field(default_factory=dict)
    _conditions: dict[str, Column] = field(default_factory=dict)
    """Node → the tap as a condition on any of its frames. It is built once: that costs many calls of the JVM."""

    def __post_init__(self) -> None:
        jvm = self.spark._jvm
        assert jvm is not None
        object.__setattr__(self, "log", jvm.millstream.TraceLog(RECORDS, PER_SECOND, CHARACTERS))
        self.spark._jsc.sc().register(self.log)

    def observe(self, frame: DataFrame, node: str, length: int, parent: Column | None = None) -> DataFrame:
        """The same rows; the log gets a line for each traced one."""
        self.lengths[node] = length
        if length:  # the preview shows the columns of this frame
            shown = [name for name in frame.columns if name not in (TRACED, REJECT, POSITION, _PARENT)]
            preview = F.left(F.to_json(F.struct(*map(quote_column, shown))), F.lit(length)) if shown else _null()
            return frame.where(self._passed(node, parent, preview))
        if node not in self._conditions:
            self._conditions[node] = self._passed(node, parent, _null())
        return frame.where(self._conditions[node])

    def take(self) -> str:
        """The lines since the last call."""
        return str(self.log.take())

    def _passed(self, node: str, parent: Column | None, preview: Column) -> Column:
        """The condition. It is decided without a call for the records that are not traced."""
        jvm = self.spark._jvm
        assert jvm is not None
        if node not in self._taps:
            self._taps[node] = jvm.millstream.TraceTap(self.log, node).function()
        noted = _call(self.spark, self._taps[node], F.col(TRACED), _null() if parent is None else parent, preview)
        return F.col(TRACED).isNull() | noted


def with_traces(frame: DataFrame, node: SourceNode, pipeline: str, taps: Taps | None) -> DataFrame:
    """The rows of a source with their trace context, if it traces any. A context that comes with a record is continued."""
    sampling = sampling_of(node.options.telemetry.trace)
    if sampling is None:
        return frame
    given = F.col(TRACED) if TRACED in frame.columns else None
    own = [F.col(quote_column(name)) for name in frame.columns if name not in (POSITION, TRACED)]
    parent = (_null() if given is None else given).alias(_PARENT)
    traced = frame.select(*own, _context(frame, sampling, f"{pipeline}/{node.name}", given).alias(TRACED), parent)
    if taps is not None:
        traced = taps.observe(traced, node.name, sampling.payload, F.col(_PARENT))
    return traced.drop(_PARENT)


def _context(frame: DataFrame, sampling: Sampling, place: str, given: Column | None) -> Column:
    """One hash of the position decides whether a record is traced, and its ids follow from the hash."""
    position = [POSITION] if POSITION in frame.columns else [each.name for each in frame.schema if _can_be_hashed(each.dataType)]
    columns = [F.col(quote_column(name)) for name in position if name not in (TRACED, REJECT)]
    number = F.xxhash64(F.lit(_number_of(place)), *columns)
    chosen = F.lit(True) if sampling.where is None else F.coalesce(_tried(F.expr(str(sampling.where))), F.lit(False))
    if sampling.ratio is not None and sampling.ratio < 1:
        chosen &= number < F.lit(int(sampling.ratio * 2**64) - 2**63)
    session = frame.sparkSession
    assert session._jvm is not None
    made = _call(session, session._jvm.millstream.TraceContext().function(), number, _null() if given is None else given)
    return F.when(chosen if given is None else chosen | given.isNotNull(), made)


def _call(spark: SparkSession, function: Any, *arguments: Column) -> Column:
    """The value of a function of the JVM."""
    return Column(function.apply(_to_seq(spark._sc, [each._jc for each in arguments])))


def _null() -> Column:
    return F.lit(None).cast("string")


def _number_of(place: str) -> int:
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), signed=True)


def _tried(condition: Column) -> Column:
    """A condition that is null where it fails: it says what is traced, and must not fail a row."""
    session = SparkSession.getActiveSession()
    assert session is not None and session._jvm is not None
    utils = session._jvm.org.apache.spark.sql.classic.ExpressionUtils
    attempt = session._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utils.expression(condition._jc))
    return Column(utils.column(attempt))


def _can_be_hashed(kind: DataType) -> bool:
    """Spark does not hash maps and variants."""
    if isinstance(kind, StructType):
        return all(_can_be_hashed(each.dataType) for each in kind)
    element = getattr(kind, "elementType", None)
    return not isinstance(kind, MapType | VariantType) and (element is None or _can_be_hashed(element))
