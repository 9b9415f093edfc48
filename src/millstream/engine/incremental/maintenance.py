"""Keeps the result of a query's root up to date during a run: state is restored, changed and logged epoch by epoch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cached_property

from pyspark.sql import DataFrame

from millstream.checkpoint.incremental import Entry, Part
from millstream.clients.storage import Storage
from millstream.engine.incremental.analysis import Analysis
from millstream.engine.incremental.changes import with_ops
from millstream.engine.incremental.log import StateLog
from millstream.engine.incremental.relations import Refused, Step
from millstream.engine.incremental.shown_columns import with_names
from millstream.engine.incremental.snapshots import SnapshotWriter
from millstream.engine.incremental.stored_rows import Version
from millstream.engine.incremental.tracing import operator_of
from millstream.engine.incremental.view import View
from millstream.observe.facts import OperatorFacts, StateFacts
from millstream.plan.changelog import OP

_SNAPSHOT_EPOCHS = 50
_SNAPSHOT_BYTES = 64 << 20
_RETRY_EPOCHS = 10


class Maintenance:
    """The incremental part of one query."""

    def __init__(
        self,
        node: str,
        analysis: Analysis,
        storage: Storage,
        partitions: int,
        *,
        final: bool = False,
        require_lease: Callable[[], None] = lambda: None,
        cost_of_reset: Callable[[], str] | None = None,
    ) -> None:
        self.node, self.reads = node, analysis.reads
        self.view = View(analysis, partitions, final=final)
        self._storage, self._require_lease, self._cost_of_reset = storage, require_lease, cost_of_reset
        self._log: StateLog | None = None
        self.key: tuple[str, ...] | None = None
        self.snapshots = SnapshotWriter()
        self._retry_at = 0
        """The epoch after which a snapshot that failed is tried again."""
        self._kept: dict[str, int] = {}
        """Store → its rows."""
        self._changed: dict[str, int] = {}

    def prepare(self, declared: tuple[str, ...], wanted: Iterable[tuple[str, ...]] = ()) -> None:
        """Compile the query. `declared` is the primary key that the user has given the node; `wanted` are the keys of its sinks, of which
        one is chosen if it follows from the query.
        """
        names = self.view.names
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise Refused(f"two columns of the result are called `{twice}`; give one of them another name with AS")
        if OP in names and not self.view.final:
            raise Refused(f"a column of the result is called `{OP}`, which is the name of the change itself; give it another name with AS")
        missing = [name for name in declared if name not in names]
        if missing:
            raise Refused(f"the primary key `{missing[0]}` is not a column of the result")
        found = self.view.find_keys()
        known = [frozenset(key) for key in found]
        chosen = next((key for key in wanted if key and _holds_one(key, known) and set(key) <= set(names)), found[0] if found else None)
        self.key = declared or chosen
        self.view.compile(with_ops, self.key, self.node if declared and not _holds_one(declared, known) else "")
        self._log = StateLog(self._storage, self._fingerprint(), self.node, self._require_lease, self._cost_of_reset)

    def _fingerprint(self) -> str:
        """Identifies the operators and their stores. Spark's column ids and the names that it makes up differ from run to run."""
        view = self.view
        trees = [view.compilation.root_step.plan, *view.compilation.streamed]
        plan = re.sub(r"#\d+L?", "", "\n".join(map(view.bridge.full_text, trees)))
        plan = re.sub(r"\b(_common_expr|lambda \w+?)_\d+", r"\1", re.sub(r"LogicalRDD.*", "LogicalRDD", plan))
        fixed = [self._values_of(step) for step in view.compilation.root_step.walk() if step.kind == "LocalRelation"]
        operators = [f"{each.number} {each.kind} {each.key}" for each in view.operators]
        text = "\n".join([plan, *fixed, *operators, view.stored_rows.schema.simpleString(), *view.stored_rows.stores, str(self.key)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _values_of(self, step: Step) -> str:
        """The rows that the query itself contains, as text. Java shows binary values by their place in memory."""
        text = str(step.plan.data().toString())
        return str(self.view.bridge.frame(step.plan).collect()) if "[B@" in text else text

    @property
    def log(self) -> StateLog:
        assert self._log is not None
        return self._log

    def is_written(self, epoch: int, digest: str) -> bool:
        """Whether the changes of an epoch are written, so that it is not computed again."""
        return self.log.entry(epoch, digest) is not None

    def step(self, frame: DataFrame, epoch: int, digest: str, *, ends: bool = False, time_ms: int = 0) -> DataFrame:
        """The changes of the result in an epoch. If they are written already, they are read back. `ends`: no more rows will come.
        `time_ms`: the time at which the epoch was planned first.
        """
        if epoch - 1 not in self.view.versions:
            self.view.adopt(epoch - 1, self._restored(epoch - 1), self._kept)
        entry = self.log.entry(epoch, digest)
        if entry is None:
            return self.view.step(epoch, frame, ends=ends, time_ms=time_ms)
        rows, stored = self._read([entry]), self.view.stored_rows
        before = self.view.versions[epoch - 1]
        self.view.versions[epoch] = {name: (*before[name], stored.fragment(name, stored.part(rows, name))) for name in stored.stores}
        return self.view.result_of(self.view.bridge.rdd(stored.part(rows, "")), frame.sparkSession)

    def _read(self, entries: Iterable[Entry]) -> DataFrame:
        return self.log.read(self.view.bridge.spark, self.view.stored_rows.schema, entries)

    def _restored(self, epoch: int) -> Version:
        """The stores after an epoch, from the newest snapshot and the changes after it."""
        self._kept = {}
        if epoch < 0:
            return self.view.empty_version()
        entries, stored = self.log.path_to(epoch), self.view.stored_rows
        for part in (part for entry in entries for part in entry.parts):
            self._kept[part.name] = self._kept.get(part.name, 0) + part.kept
        rows = self._read(entries)
        compiled = stored.compiled
        version = {name: (stored.fragment(name, compiled.merge_of(name)(stored.part(rows, name))),) for name in stored.stores}
        self._kept |= {name: int(version[name][0].count()) for name in compiled.merging}
        return version

    def write(self, epoch: int, digest: str) -> None:
        """Write the changes of an epoch. Call it when its rows are computed, before a sink commits them."""
        entry = self.log.entry(epoch, digest)
        added = self.view.measure(epoch)
        if entry is None:
            entry = self.log.write(epoch, digest, self.view.added(), self._parts, added)
        self._kept = {part.name: self._kept.get(part.name, 0) + part.kept for part in entry.parts}
        self._changed = {part.name: part.rows for part in entry.parts}
        for name in self.view.stored_rows.compiled.merging:  # their rows become fewer in another way than by their weights
            self._kept[name] = self.view.rows_before(name, epoch) + self._changed[name]

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        """The parts of what is written. They are the same for few rows and for many."""
        return with_names(self.view.parts(), self.view.compilation)

    def facts(self, epoch: int) -> StateFacts:
        """What the operators keep after an epoch that is written."""
        found, keys = [], {each.number: each.key for each in self.view.operators}
        for number, kind in self.view.compilation.kinds.items():
            stores = [name for name in self.view.stored_rows.stores if operator_of(name) == str(number)]
            if stores:
                rows, changed = sum(self._kept[name] for name in stores), sum(self._changed[name] for name in stores)
                size = sum(self.view.bytes_of(name, epoch) for name in stores)
                found.append(OperatorFacts(kind, keys.get(number, ""), rows, size, changed))
        total, held = sum(each.rows for each in found), sum(each.bytes for each in found)
        return StateFacts(total, held, self.log.bytes_until(epoch), tuple(found))

    def finish(self, epoch: int, digest: str, watermark_ms: int = 0) -> str:
        """All sinks hold the epoch: merge, and begin a snapshot when it is due. `watermark_ms`: the watermark by which the epoch has closed
        windows. Returns a warning about the last snapshot, if it failed.
        """
        warning = self._end_snapshot(epoch)
        self._kept |= self.view.finish(epoch, self._changed, self._kept, watermark_ms * 1000)
        ready = not self.snapshots.is_busy and epoch >= self._retry_at
        if ready and self.log.is_snapshot_due(epoch, _SNAPSHOT_EPOCHS, _SNAPSHOT_BYTES):
            self._begin_snapshot(epoch, digest, watermark_ms * 1000)
        return warning

    def _begin_snapshot(self, epoch: int, digest: str, watermark_us: int) -> None:
        """Write a snapshot beside the next epochs, which keep half of the cores."""
        parts, tasks = self._parts, self.view.bridge.spark.sparkContext.defaultParallelism // 2
        rows = self.view.pin(epoch, watermark_us).coalesce(max(1, tasks))
        self.snapshots.start(lambda: self.log.write_snapshot(epoch, digest, rows, parts))

    def _end_snapshot(self, epoch: int) -> str:
        """Free the version of a snapshot that has ended."""
        ended, failure = self.snapshots.take()
        if not ended:
            return ""
        self.view.unpin()
        if failure is None:
            self.log.count_again()
            return ""
        self._retry_at = epoch + _RETRY_EPOCHS
        again = f"it is tried again in {_RETRY_EPOCHS} epochs"
        return f"query `{self.node}`: no snapshot of its state was written, and {again}: {_reason(failure)}"

    def close(self) -> str:
        """Wait for a snapshot that is being written, and free everything. Returns a warning if the snapshot failed."""
        self.snapshots.wait()
        _, failure = self.snapshots.take()
        self.view.close()
        if failure is None:
            return ""
        return f"query `{self.node}`: no snapshot of its state was written at the end, and all changes are kept: {_reason(failure)}"


def _reason(failure: Exception) -> str:
    return str(failure).partition("\n")[0]


def _holds_one(columns: tuple[str, ...], keys: list[frozenset[str]]) -> bool:
    """Whether columns identify a row because some of them do."""
    return any(key <= frozenset(columns) for key in keys)
