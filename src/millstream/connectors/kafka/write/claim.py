"""Takes over the lanes of a sink when a run begins, and renews their markers once a day: Kafka deletes old ones.

What the markers show of the epoch is compared with the log. A lane that holds the epoch and is not expected to is the work of a copy of the
pipeline.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.connectors.kafka.worker.lanes import LaneJob, LaneOutcome
from millstream.connectors.kafka.worker.producers import SMALL, Writer
from millstream.connectors.kafka.write.epoch_log import EpochLog, EpochPlan
from millstream.connectors.kafka.write.lane_fencing import claim_lanes, writer_of_small_epochs
from millstream.connectors.kafka.write.publisher import Claim, give_up_error, refuse
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class SinkLanes:
    """The lanes of a sink, as one epoch uses them."""

    epoch: Epoch
    topic: str
    partitions: int
    group: str
    log: EpochLog
    writing: Mapping[str, Any]
    """Properties of a producer."""
    claim: Claim

    def take_over(self, lanes: int, plan: EpochPlan | None, known: Iterable[int], *, repeated: bool) -> bool:
        """Take over the lanes, under a new name. `known` lanes have a marker. Returns whether all rows of the epoch are there, as a small
        epoch, and the log does not know it.
        """
        self.claim.run, self.claim.attempting = uuid.uuid4().hex[:12], True
        done = self.log.done()
        is_done = done.holds(self.epoch.number, self.epoch.digest)
        # before the first attempt a marker may be absent; but a recent one cannot have expired: it was removed
        held = self._take(self._count(lanes, plan, known), done.expected_epochs() if repeated else done.younger(_DAY), owned=False)
        if not is_done and _contradict(held, plan):
            raise RunError(_other_attempt(self.epoch))
        self.claim.attempting = not is_done and (plan is not None or bool(held))
        return not is_done and plan is None and bool(held)

    def must_renew(self) -> bool:
        return self.epoch.number != self.claim.epoch and time.time() - self.claim.at > _DAY

    def renew(self, lanes: int) -> None:
        """Write the markers again, of lanes that are still this run's. An epoch that one of them shows is the work of another run."""
        if self._take(self._count(lanes, None, ()), self.log.done().younger(_DAY), owned=True):
            raise RunError(_other_attempt(self.epoch))

    def job(self, required: Iterable[int]) -> LaneJob:
        """The lanes that must have a marker: claimed ones do."""
        epoch, expected = self.epoch, self.log.done().expected_epochs()
        lanes = frozenset(required)
        return LaneJob(self.writing, self.group, self.topic, epoch.number, epoch.digest, self.claim.run, expected, lanes)

    def _count(self, lanes: int, plan: EpochPlan | None, known: Iterable[int]) -> int:
        """The lanes to claim: also those that were used before, by this checkpoint or by a copy of it."""
        used = [lane + 1 for lane in (*self.log.done().expected_epochs(), *known)]
        return max(min(lanes, self.partitions), plan.lanes if plan else 0, *used)

    def _take(self, lanes: int, required: Iterable[int], *, owned: bool) -> list[int]:
        """Open the lanes, and renew their markers. Returns those that show the epoch."""
        self.claim.epoch, self.claim.writer = self.epoch.number, None
        job = self.job(required)
        writer, outcomes = _claim(job, lanes, owned=owned)
        if owned and any(each.outcome == "fenced" for each in outcomes):
            # another run has opened a lane meanwhile; its name is found now, and a restart of this run would take the lane back
            writer, outcomes = _claim(job, lanes, owned=True)
        refuse(outcomes, job, self.epoch)
        if not all(each.is_committed for each in outcomes):
            raise give_up_error(outcomes, self.epoch)
        self.claim.writer, self.claim.at, self.claim.lanes = writer, time.time(), lanes
        self.log.record_claim(self.claim.run, (each.lane for each in outcomes))
        return [each.lane for each in outcomes if each.outcome == "held"]


def _claim(job: LaneJob, lanes: int, *, owned: bool) -> tuple[Writer, list[LaneOutcome]]:
    writer = writer_of_small_epochs(job)
    return writer, claim_lanes(job, lanes, writer, owned=owned)


def _contradict(held: list[int], plan: EpochPlan | None) -> bool:
    """Whether the lanes that show the epoch are others than those that can: with a plan the lanes of large epochs, without one that of
    small epochs.
    """
    return SMALL in held if plan is not None else held not in ([], [SMALL])


def _other_attempt(epoch: Epoch) -> Diagnostic:
    message = f"sink `{epoch.sink}` already holds rows of epoch {epoch.number} that this checkpoint does not know of"
    detail = "a copy of the pipeline has written them; nothing was written now"
    return Diagnostic("MS055", message, detail=detail, help="use the newest checkpoint")
