"""Exactly-once delivery on the driver: one epoch of one sink is staged, published, and done.

A small epoch is collected and written in one transaction. Nothing of it can be half done, so nothing is recorded before.
A large epoch is written by lanes, in one transaction each. Deterministic rows are kept in Spark's shuffle (`shuffle_staging.py`); others
are computed once and kept as files in the checkpoint, for a repetition of the epoch. Before a lane is opened, the log records which it is
and the number of lanes.
Rows that must not be computed twice are always written to files, which tell how large the epoch is; the driver reads those of a small one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.kafka.worker.producers import SMALL
from millstream.connectors.kafka.write.claim import SinkLanes
from millstream.connectors.kafka.write.encoding import in_lanes, in_order
from millstream.connectors.kafka.write.epoch_log import EpochLog, EpochPlan
from millstream.connectors.kafka.write.publisher import publish, publish_small
from millstream.connectors.kafka.write.shuffle_staging import into_lanes, shuffle
from millstream.connectors.kafka.write.small_epochs import in_source_order, read_files
from millstream.connectors.kafka.write.target import markers
from millstream.errors import Diagnostic, RunError
from millstream.jvm.file_writer import write
from millstream.plan.components import Epoch, LedgerEntry, Staged
from millstream.sql.catalyst.small_rows import SmallRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN = {"compression": "lz4", "parquet.enable.dictionary": "false"}


@dataclass(frozen=True, slots=True)
class LargeEpoch:
    """Staged messages that lanes write."""

    plan: EpochPlan
    messages: DataFrame
    """Divided into lanes, where they are already shuffled."""
    repeated: bool
    """Whether an earlier attempt may have opened lanes."""


@dataclass(frozen=True, slots=True)
class SmallEpoch:
    """Messages in the driver, in the order of writing."""

    messages: pa.Table


Work = LargeEpoch | SmallEpoch


@dataclass(frozen=True, slots=True)
class Delivery:
    """One epoch of one sink."""

    lanes: SinkLanes
    reading: Mapping[str, str]
    """Properties of an admin client."""
    small: SmallRows

    @property
    def epoch(self) -> Epoch:
        return self.lanes.epoch

    @property
    def log(self) -> EpochLog:
        return self.lanes.log

    def held_epoch(self, lanes: int) -> LedgerEntry | None:
        """The markers show what must not be written again; only the log, or the marker of a small epoch, shows that no row is missing.
        Afterwards the lanes belong to this run.
        """
        plan = self.log.open_plan(self.epoch.number, self.epoch.digest)
        known = markers(self.reading, self.lanes.group, self.lanes.topic, self.lanes.partitions)
        number, digest = max(known.values(), default=(-1, ""))
        if number > self.epoch.number or (number == self.epoch.number and digest != self.epoch.digest):
            return LedgerEntry(number, digest)
        repeated = plan is not None or (self.epoch.planned_before and not self.log.done().rested)
        if self.lanes.take_over(lanes, plan, known, repeated=repeated):
            self.log.finish(self.epoch.number, self.epoch.digest, [SMALL], small=True)
        done = self.log.done()
        return LedgerEntry(done.epoch, done.digest) if done.epoch >= 0 else None

    def stage(self, frame: DataFrame, lanes: int) -> Staged[Work | None]:
        """`lanes`: how many are wanted. More than were claimed are not used: they grow with Spark's executors, for example."""
        if self.lanes.must_renew():
            self.lanes.renew(lanes)
        claim = self.lanes.claim
        plan = self.log.open_plan(self.epoch.number, self.epoch.digest) if self.epoch.number == claim.epoch else None
        tried = plan is None and self.epoch.repeatable and self.small.is_tried()
        if tried and (rows := self.small.collect(frame)) is not None:
            return Staged(rows.num_rows, SmallEpoch(in_source_order(rows)))
        messages, _ = self.small.build(frame)
        if plan is not None:
            return self._repeat(messages, plan)
        plan = EpochPlan("", min(lanes, claim.lanes, self.lanes.partitions), 0, self.epoch.digest)
        if not self.epoch.repeatable:
            return self._stage_in_files(messages, plan)
        return replace(self._stage_in_shuffle(messages, plan), reads=2 if tried else 1)

    def commit(self, work: Work) -> None:
        self.lanes.claim.attempting = True
        if isinstance(work, SmallEpoch):
            self._commit_small(work.messages)
        else:
            self._commit_lanes(work)
        self.lanes.claim.attempting = False

    def abort(self, work: Work) -> None:
        if isinstance(work, LargeEpoch) and work.plan.folder and not work.repeated:
            self.log.storage.delete(work.plan.folder)

    def _commit_small(self, messages: pa.Table) -> None:
        if messages.num_rows:
            publish_small(messages, self.lanes.job([SMALL]), self.lanes.claim, self.epoch)
        self.log.finish(self.epoch.number, self.epoch.digest, [SMALL] if messages.num_rows else [], small=True)

    def _commit_lanes(self, work: LargeEpoch) -> None:
        plan = self.log.put_once(self.epoch.number, work.plan)
        self._require_digest(plan)
        marked = (
            publish(self._messages(replace(work, plan=plan)), self.lanes.job(range(plan.lanes)), self.epoch)
            if plan.rows or work.plan.rows
            else []
        )
        self.log.finish(self.epoch.number, self.epoch.digest, marked)

    def _repeat(self, messages: DataFrame, plan: EpochPlan) -> Staged[Work | None]:
        self._require_digest(plan)
        if not plan.folder:
            return self._stage_in_shuffle(messages, plan, repeated=True)
        messages.write.format("noop").mode("append").save()  # a query with state must process every epoch
        return Staged(plan.rows, LargeEpoch(plan, messages, repeated=True))

    def _stage_in_shuffle(self, messages: DataFrame, plan: EpochPlan, repeated: bool = False) -> Staged[Work | None]:
        shuffled = shuffle(in_lanes(messages, plan.lanes), plan.lanes)
        found = replace(plan, rows=shuffled.rows, hash=shuffled.hash)
        if repeated and _differ(plan, found) and not self.epoch.accepts:
            raise RunError(_other_rows(self.epoch, plan, found))
        self.small.learn(shuffled.bytes)
        return Staged(shuffled.rows, LargeEpoch(found, shuffled.frame, repeated))

    def _stage_in_files(self, messages: DataFrame, plan: EpochPlan) -> Staged[Work | None]:
        folder, storage = f"{self.epoch.number}-{uuid.uuid4().hex[:8]}", self.log.storage
        written = write(in_lanes(messages, plan.lanes), f"{storage.url}/{folder}", "parquet", (), _PLAIN, None)
        if (rows := read_files(storage, folder, written)) is not None:
            storage.delete(folder)
            return Staged(written.rows, SmallEpoch(in_source_order(rows)))
        storage.sync(f"{folder}/{name}" for name in storage.files(folder))
        return Staged(written.rows, LargeEpoch(replace(plan, folder=folder, rows=written.rows), messages, repeated=False))

    def _messages(self, work: LargeEpoch) -> DataFrame:
        """The messages by lane, each in its order."""
        messages = work.messages
        if work.plan.folder:
            staged = messages.sparkSession.read.parquet(f"{self.log.storage.url}/{work.plan.folder}")
            messages = into_lanes(staged, work.plan.lanes)
        return in_order(messages)

    def _require_digest(self, plan: EpochPlan) -> None:
        if plan.digest != self.epoch.digest:
            message = f"sink `{self.epoch.sink}` has begun epoch {self.epoch.number} of another history"
            raise RunError(Diagnostic("MS055", message, detail="nothing was written", help="restore the checkpoint as a whole"))


def _differ(plan: EpochPlan, found: EpochPlan) -> bool:
    """Whether a repeated epoch has other messages. Plans of an older version have no hash."""
    return found.rows != plan.rows or (bool(plan.hash) and found.hash not in ("", plan.hash))


def _other_rows(epoch: Epoch, plan: EpochPlan, found: EpochPlan) -> Diagnostic:
    message = f"epoch {epoch.number} of sink `{epoch.sink}` is half done, and its messages have changed"
    detail = f"there were {plan.rows} messages, there are {found.rows} now, and their contents differ; nothing more was written"
    help_ = "undo the change in the input or in the code; or `--accept-replay`: written lanes stay, others get the new rows"
    return Diagnostic("MS142", message, detail=detail, help=help_)
