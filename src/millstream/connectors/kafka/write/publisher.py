"""Publishes one epoch's rows: a large epoch by one Spark task per lane, a small one by the driver; and retries what failed.

A retry is always safe: a lane that has committed shows its marker and is skipped. So a dead worker, a broker that is temporarily down, or
an attempt that a late one of our own fenced only cost another round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.producers import SMALL, Writer, marker_group
from millstream.connectors.kafka.write.lane_fencing import writer_of_small_epochs
from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.jvm.job_retry import worker_died
from millstream.jvm.pickling import by_value
from millstream.plan.components import Epoch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ROUNDS = 6
_ABORT_SECONDS = 5


@dataclass(slots=True)
class Claim:
    """What a run has claimed for one query: its lanes, and the writer of small epochs."""

    run: str = ""
    """The name of the run; markers contain it."""
    epoch: int = -1
    """The first epoch after the claim. Only this one can be half done."""
    lanes: int = 0
    """How many lanes of large epochs are claimed. No others are written."""
    at: float = 0
    """When the markers were renewed: Kafka deletes old ones."""
    writer: Writer | None = None
    """The open writer of small epochs; None after a failure."""
    attempting: bool = False
    """Whether an epoch may be half written."""


def publish(messages: DataFrame, job: lanes.LaneJob, epoch: Epoch) -> list[int]:
    """Write a large epoch. The lanes that have it now: all that have rows."""
    return [each.lane for each in _retry(lambda: _round(messages, job), job, epoch)]


def publish_small(messages: pa.Table, job: lanes.LaneJob, claim: Claim, epoch: Epoch) -> None:
    """Write a small epoch in one transaction. After a failure a new writer finds out what the last one has committed."""

    def attempt() -> list[lanes.LaneOutcome]:
        writer = claim.writer or writer_of_small_epochs(job)
        claim.writer = None
        found = lanes.write(job, writer, iter(messages.to_batches()))
        if found.outcome == "done":
            claim.writer = writer
        elif found.outcome == "refused":
            writer.abort(_ABORT_SECONDS)
        return [found]

    _retry(attempt, job, epoch)


def _retry(attempt: Callable[[], list[lanes.LaneOutcome]], job: lanes.LaneJob, epoch: Epoch) -> list[lanes.LaneOutcome]:
    """Repeat an attempt until all its lanes are committed."""
    found: list[lanes.LaneOutcome] = []
    for turn in range(_ROUNDS):
        started = time.monotonic()
        try:
            found = attempt()
        except Exception as error:
            if turn == _ROUNDS - 1 or not worker_died(error):
                raise
            found = []
        else:
            refuse(found, job, epoch)
            if all(each.is_committed for each in found):
                return found
            _require_time(found, job, epoch, time.monotonic() - started)
            if turn and any("UNKNOWN_TOPIC" in each.detail for each in found):
                break  # deleted, or the cluster is unhealthy: the next start checks
        time.sleep(min(0.2 * 2**turn, 3))
    raise give_up_error(found, epoch)


def name_lane(lane: int) -> str:
    return "the lane of small epochs" if lane == SMALL else f"lane {lane}"


def refuse(outcomes: list[lanes.LaneOutcome], job: lanes.LaneJob, epoch: Epoch) -> None:
    """Raise for failures that a retry cannot fix."""
    for each in outcomes:
        where = f"{name_lane(each.lane)} of topic `{job.topic}`"
        if each.outcome == "history":
            message = f"sink `{epoch.sink}` already holds rows of another history: {where}, epoch {epoch.number}"
            detail = f"{each.detail}; the checkpoint was restored from an older copy; nothing was written"
            raise RunError(Diagnostic("MS055", message, detail=detail, help="use the newest checkpoint"))
        if each.outcome == "taken":
            detail = f"{where}: {each.detail}; its rows stay, and are written once"
            help_ = "a copy of the pipeline may run on a copy of the checkpoint: run only one of them"
            raise RunError(Diagnostic("MS095", f"another run is writing as sink `{epoch.sink}`", detail=detail, help=help_))
        if each.outcome == "missing":
            message = f"sink `{epoch.sink}` cannot determine whether epoch {epoch.number} was written: {where} lacks its marker"
            detail = f"{each.detail}; the markers are the offsets of the consumer group `{marker_group(job.group, each.lane)}`"
            help_ = f"look into the topic for rows of epoch {epoch.number}; `--reset QUERY` with an empty topic writes everything again"
            raise RunError(Diagnostic("MS096", message, detail=detail, help=help_))
        if each.outcome == "refused":
            code = "MS092" if "AUTHORIZATION" in each.detail else "MS097"
            raise RunError(Diagnostic(code, f"Kafka refuses what sink `{epoch.sink}` writes to `{job.topic}`: {each.detail}"))


def give_up_error(outcomes: list[lanes.LaneOutcome], epoch: Epoch) -> RunError:
    said = next((each.detail for each in outcomes if not each.is_committed), "no lane answered")
    return TemporaryError(Diagnostic("MS090", f"sink `{epoch.sink}` could not write to Kafka: {said}"))


def _require_time(outcomes: list[lanes.LaneOutcome], job: lanes.LaneJob, epoch: Epoch, seconds: float) -> None:
    """The broker aborts transactions that take too long, with the same error as for another owner."""
    limit = job.client["transaction.timeout.ms"] / 1000
    slow = [each for each in outcomes if each.outcome == "fenced"]
    if slow and seconds >= limit:
        message = f"sink `{epoch.sink}` needs longer for epoch {epoch.number} than `transaction_timeout` allows: {limit:g} s"
        took = f"{name_lane(slow[0].lane)} took {seconds:.0f} s"
        detail = f"{took}; the epoch is not written, and is repeated at the next start ({slow[0].detail})"
        help_ = "raise `transaction_timeout`, or make epochs smaller where they are read: `max_rows_per_epoch`"
        raise RunError(Diagnostic("MS098", message, detail=detail, help=help_))


def _round(messages: DataFrame, job: lanes.LaneJob) -> list[lanes.LaneOutcome]:
    from millstream.connectors.kafka import worker

    function = lanes.publish(job)
    with by_value(worker):
        rows = messages.mapInArrow(function, lanes.OUTCOME).collect()  # type: ignore[arg-type]  # it gets an iterator
    return [lanes.LaneOutcome(*row) for row in rows]
