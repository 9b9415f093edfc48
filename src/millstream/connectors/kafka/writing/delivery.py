"""Exactly once, as the driver sees it: one epoch of one sink is staged, planned, published, and done.

Rows that are the same each time wait in Spark's shuffle (`shuffling.py`). Others are computed once and wait as files in the checkpoint, for
whoever repeats the epoch. Either way the logbook says, before a lane is opened, which it is and how many lanes there are.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.clients.writing import write
from millstream.connectors.kafka.writing.claims import claim
from millstream.connectors.kafka.writing.encoding import in_lanes, in_order
from millstream.connectors.kafka.writing.lanes import Job
from millstream.connectors.kafka.writing.logbook import Logbook, Plan
from millstream.connectors.kafka.writing.publishing import given_up, publish, refuse
from millstream.connectors.kafka.writing.shuffling import into_lanes, shuffle
from millstream.connectors.kafka.writing.target import markers
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch, LedgerEntry, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DAY = 86_400
_PLAIN = {"compression": "lz4", "parquet.enable.dictionary": "false"}


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be committed."""

    plan: Plan
    messages: DataFrame
    """In lanes, where they are shuffled already."""
    repeated: bool
    """Whether an earlier attempt may have opened lanes."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One epoch of one sink."""

    epoch: Epoch
    topic: str
    partitions: int
    group: str
    logbook: Logbook
    reading: Mapping[str, str]
    """Properties of a client that asks."""
    writing: Mapping[str, Any]
    """Properties of a producer."""
    memory: dict[str, Any]
    """What the sink keeps for the length of a run."""

    def held(self, lanes: int) -> LedgerEntry | None:
        """The markers say what must not be written again; only the logbook knows that no lane is missing. The lanes are this run's then."""
        done, plan = self.logbook.done(), self.logbook.plan(self.epoch.number)
        number, digest = max(markers(self.reading, self.group, self.topic, self.partitions).values(), default=(-1, ""))
        if number > self.epoch.number or (number == self.epoch.number and digest != self.epoch.digest):
            return LedgerEntry(number, digest)
        used = [lane + 1 for lane in done.expected()]
        self._claim(max(min(lanes, self.partitions), plan.lanes if plan else 0, *used), repeated=plan is not None)
        return LedgerEntry(done.epoch, done.digest) if done.epoch >= 0 else None

    def stage(self, messages: DataFrame, lanes: int) -> Staged:
        plan = self.logbook.plan(self.epoch.number)
        if plan is not None:
            return self._again(messages, plan)
        plan = Plan("", min(lanes, self.partitions), 0, self.epoch.digest)
        return self._shuffled(messages, plan, repeated=False) if self.epoch.repeatable else self._written(messages, plan)

    def commit(self, work: Work) -> None:
        plan = self.logbook.put_once(self.epoch.number, work.plan)
        self._require_digest(plan)
        marked = publish(self._messages(replace(work, plan=plan)), self._job(plan.lanes), self.epoch) if plan.rows or work.plan.rows else []
        self.logbook.finish(self.epoch.number, self.epoch.digest, marked)

    def abort(self, work: Work) -> None:
        if work.plan.folder and not work.repeated:
            self.logbook.storage.delete(work.plan.folder)

    def _again(self, messages: DataFrame, plan: Plan) -> Staged:
        self._require_digest(plan)
        if not plan.folder:
            return self._shuffled(messages, plan, repeated=True)
        messages.write.format("noop").mode("append").save()  # a query with state must see every epoch
        return Staged(plan.rows, Work(plan, messages, repeated=True))

    def _shuffled(self, messages: DataFrame, plan: Plan, repeated: bool) -> Staged:
        shuffled = shuffle(in_lanes(messages, plan.lanes), plan.lanes)
        found = replace(plan, rows=shuffled.rows, hash=shuffled.hash)
        if repeated and _differ(plan, found) and not self.epoch.accepts:
            raise RunError(_other_rows(self.epoch, plan, found))
        return Staged(shuffled.rows, Work(found, shuffled.frame, repeated))

    def _written(self, messages: DataFrame, plan: Plan) -> Staged:
        folder, storage = f"{self.epoch.number}-{uuid.uuid4().hex[:8]}", self.logbook.storage
        written = write(in_lanes(messages, plan.lanes), f"{storage.url}/{folder}", "parquet", (), _PLAIN, None)
        storage.sync(f"{folder}/{name}" for name in storage.files(folder))
        return Staged(written.rows, Work(replace(plan, folder=folder, rows=written.rows), messages, repeated=False))

    def _messages(self, work: Work) -> DataFrame:
        """In lanes, each in its order."""
        messages = work.messages
        if work.plan.folder:
            staged = messages.sparkSession.read.parquet(f"{self.logbook.storage.url}/{work.plan.folder}")
            messages = into_lanes(staged, work.plan.lanes)
        return in_order(messages)

    def _claim(self, lanes: int, repeated: bool) -> None:
        self.memory["run"] = uuid.uuid4().hex[:12]
        done = self.logbook.done()
        # an absent marker is no riddle before the first attempt; but one that is young has not expired: somebody removed it
        required = frozenset(done.expected()) if repeated else done.younger(_DAY)
        job = replace(self._job(0), required=required)
        outcomes = claim(job, lanes)
        refuse(outcomes, job, self.epoch)
        if any(each.outcome != "done" for each in outcomes):
            raise given_up(outcomes, self.epoch)

    def _job(self, lanes: int) -> Job:
        """Lanes that are claimed have a marker."""
        expected, required = self.logbook.done().expected(), frozenset(range(lanes))
        return Job(self.writing, self.group, self.topic, self.epoch.number, self.epoch.digest, self.memory["run"], expected, required)

    def _require_digest(self, plan: Plan) -> None:
        if plan.digest != self.epoch.digest:
            message = f"sink `{self.epoch.sink}` has begun epoch {self.epoch.number} of another history"
            raise RunError(Diagnostic("MS055", message, detail="nothing was written", help="restore the checkpoint as a whole"))


def _differ(plan: Plan, found: Plan) -> bool:
    """Whether a repeated epoch has other messages. Plans of an older version have no hash."""
    return found.rows != plan.rows or (bool(plan.hash) and found.hash not in ("", plan.hash))


def _other_rows(epoch: Epoch, plan: Plan, found: Plan) -> Diagnostic:
    message = f"epoch {epoch.number} of sink `{epoch.sink}` is half done, and its messages are not what they were"
    detail = f"there were {plan.rows} messages, there are {found.rows} now, and their contents differ; nothing more was written"
    help_ = "undo what changed in the input or in the code; or `--accept-replay`: lanes that are written stay, others get the new rows"
    return Diagnostic("MS142", message, detail=detail, help=help_)
