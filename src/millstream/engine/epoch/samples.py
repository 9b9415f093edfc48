"""Rows of an epoch for those who watch a node: they are filtered, and then some of them are taken.

Rows exist only while Spark computes the epoch. So the part of the epoch's own plan that computes the node runs once more, as a batch,
until there are enough rows: its leaves have the offsets of the epoch, and `now()` has the epoch's time. A node with state, or one whose
rows vary, would give other rows than it gave to the pipeline. From the point where Spark hands over the epoch such rows are held
(`EpochFrames`); above it the node is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from millstream.engine.epoch.frames import EpochFrames
from millstream.engine.epoch.status import PlannedEpoch, QueryHandle
from millstream.engine.failures.text import CONDITION, first_line, sentence_of, text_of
from millstream.engine.lowering.nodes import Lowering, Stream, visible
from millstream.errors import Diagnostic, RunError
from millstream.observe.events import Event, RowsRefused, RowsSampled
from millstream.observe.watches import ROWS, Watched
from millstream.plan.cutting import QueryPlan
from millstream.rules.functions import calls_of
from millstream.sql.analysed.plans import children, keeps_state
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.clock import freeze
from millstream.sql.check.row_filters import refuse_filter

_CHECK = "spark.sql.streaming.unsupportedOperationCheck"
"""Spark refuses a stream's leaf in a batch plan."""

_SHOWN = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Values as they are: Spark shows milliseconds unless it is told."""


@dataclass
class Samples:
    """Takes samples of the epochs of one query."""

    lowering: Lowering
    query: QueryHandle
    stream: Stream | None = None
    """The streaming plan, once it runs."""
    _paths: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    """Node → where its part of the plan is: the number of the child at each step from the top"""

    def take(self, watched: Watched, epoch: PlannedEpoch, held: EpochFrames) -> Event | None:
        """Rows of a node, or why there are none. None when the epoch did not compute the node."""
        common: dict[str, Any] = {"node": watched.node, "query": epoch.plan.name, "epoch": epoch.number, "where": watched.where}
        again = self.reads_again(watched.node, epoch.plan, held)
        if epoch.plan.is_handed_over(watched.node) and not held.computes(watched.node):
            return None
        try:
            with self._rows(watched.node, epoch.plan, held) as found:
                rows = self.lowering.untraced(found)
                columns = {each.name: each.dataType.simpleString() for each in rows.schema}
                return RowsSampled(**common, rows=_some_of(rows, watched.where, epoch.clock), read_again=again, columns=columns)
        except Exception as error:  # noqa: BLE001 — whatever it is, only the watcher learns of it
            why = error.diagnostics[0] if isinstance(error, RunError) else _failure(error, watched)
            return RowsRefused(**common, code=why.code, message=why.message, detail=why.detail, help=why.help)

    def reads_again(self, name: str, plan: QueryPlan, frames: EpochFrames) -> bool:
        """Whether the rows of a node are read again, because nothing holds them."""
        return not plan.is_handed_over(name) or not frames.holds(name)

    @contextmanager
    def _rows(self, name: str, plan: QueryPlan, frames: EpochFrames) -> Iterator[DataFrame]:
        """The rows of a node; use them in the body."""
        if not self.reads_again(name, plan, frames):
            yield frames.rows(name)
            return
        with _unchecked(frames.session):
            if not plan.is_handed_over(name):
                yield self._read_again(name, plan, frames.session)
                return
            again = frames.over(self._read_again(plan.stream_end.name, plan, frames.session))
            try:
                yield again.rows(name)
            finally:
                again.release()

    def _read_again(self, name: str, plan: QueryPlan, session: SparkSession) -> DataFrame:
        """The rows of a node of Spark's streaming plan."""
        self._require_same_rows(name, plan)
        path = self._path(name)
        if path is None:
            raise _refusal(name, "Spark computes it together with another node")
        (part,) = children(self.query.get().streamingQuery().lastExecution().logical())  # the top of the plan is Spark's sink
        for place in path:
            part = children(part)[place]
        if keeps_state(part):
            raise _refusal(name, "it depends on rows of other epochs, or on a table")
        return visible(Bridge(session).frame(part), plan.node(name))

    def _require_same_rows(self, name: str, plan: QueryPlan) -> None:
        for step in plan.steps_to(name):
            varying = any(used.name in self.lowering.varying for used in calls_of(step, plan.functions))
            if step.stateful or varying or self.lowering.varies(step):
                raise _refusal(name, f"`{step.name}` {'keeps state' if step.stateful else 'returns other rows each time'}")

    def _path(self, name: str) -> tuple[int, ...] | None:
        if name not in self._paths:
            known = self.stream.frames if self.stream is not None else {}
            top, part = (self.stream.frame, known[name]) if self.stream is not None and name in known else (None, None)
            self._paths[name] = _find(_analysed(top), _analysed(part)) if top is not None and part is not None else None
        return self._paths[name]


@contextmanager
def _unchecked(session: SparkSession) -> Iterator[None]:
    """In the body Spark takes a stream's leaf in a batch plan; later epochs are checked as before."""
    before = session.conf.get(_CHECK, None)
    session.conf.set(_CHECK, "false")
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_CHECK)
        else:
            session.conf.set(_CHECK, before)


def _some_of(rows: DataFrame, where: str, clock: str) -> tuple[str, ...]:
    """Rows that pass the filter, as JSON."""
    if where:
        rows = _filter(rows, where, clock)
    row = F.to_json(F.struct("*"), _SHOWN)
    return tuple(found[0] for found in rows.select(row).limit(ROWS).collect())


def _filter(rows: DataFrame, where: str, clock: str) -> DataFrame:
    if refused := refuse_filter(where, _schema(rows)):
        raise RunError(refused)
    kept = freeze(rows.alias("input").where(where), clock)
    if Bridge(rows.sparkSession).subquery_plans(kept._jdf.queryExecution().analyzed()):
        raise RunError(Diagnostic("MS030", "a filter of rows reads one row, and this one has a query of its own"))
    return kept


def _schema(rows: DataFrame) -> pa.Schema | None:
    try:
        return to_arrow_schema(rows.schema)
    except Exception:  # noqa: BLE001 — Arrow has no such type; then Spark decides
        return None


def _refusal(name: str, reason: str) -> RunError:
    message = f"the rows of `{name}` cannot be read again: {reason}"
    return RunError(Diagnostic("MS189", message, help="look at a node below it"))


def _failure(error: Exception, watched: Watched) -> Diagnostic:
    """What Spark says when it reads the rows."""
    text = text_of(error)
    condition = CONDITION.search(text)
    sentence = sentence_of(text, condition) if condition else first_line(text)
    if watched.where and "AnalysisException" in text:
        return Diagnostic("MS066", f"Spark rejects the filter: {sentence}")
    what = "the filter failed on a row" if watched.where else f"the rows of `{watched.node}` could not be read"
    return Diagnostic("MS067" if watched.where else "MS189", f"{what}: {sentence}")


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _find(tree: Any, part: Any) -> tuple[int, ...] | None:
    """The way from the top of a plan to a part of it."""
    if tree.fastEquals(part):
        return ()
    for place, child in enumerate(children(tree)):
        found = _find(child, part)
        if found is not None:
            return (place, *found)
    return None
