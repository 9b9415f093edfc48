"""Claims a sink for one run at a time.

A claim opens each lane, which fences its previous owner, and renews its marker under the name of this run, in a transaction of that lane:
if another run opens the lane meanwhile, one of the two fails. When all these transactions are committed, the markers of all lanes are read
once more, those included that this run does not use. Each that exists must name this run, else the claim fails. Only then are rows written.

Two copies that claim at the same time may each win some lanes. Why they cannot both write: suppose that the claims of A and B both pass.
Both have claimed the lane of small epochs; let B be the one that did so last. The second look reads committed markers and waits for those
that are still in a transaction, so A's look at that lane was over before B's transaction there sent its marker: otherwise A had seen B's
name. A's look came after all of A's transactions, B's look after all of B's. So B has looked at every lane after A had put its name there,
also at lanes that B does not use, and found only its own name: B has claimed every lane that A has, and each after A. From B's opening of
a lane on, A cannot commit there. If A opens the lane again, either B's claim of it fails, or A finds B's name and stops. What A had
committed before, B has read when it opened the lane. If only some lanes went to B, A has seen B's name or B has seen A's, whatever the
number of lanes of each; both may have to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.lanes import (
    LaneJob,
    LaneOutcome,
    Marker,
    check_marker,
    check_own_marker,
    commit,
    failure,
    mark,
    marker,
    markers,
)
from millstream.connectors.kafka.worker.producers import SMALL, Writer, open_group

_AT_ONCE = 8

Check = Callable[[LaneJob, int, Marker | None], LaneOutcome | None]


def writer_of_small_epochs(job: LaneJob) -> Writer:
    return Writer(job.client, job.group, SMALL)


def claim_lanes(job: LaneJob, count: int, small: Writer, *, owned: bool = False) -> list[LaneOutcome]:
    """Take over the lanes, that of small epochs included, whose writer stays open. A lane that does not match the log is not changed, and
    is returned. `owned`: they are this run's already, and only their markers are renewed; one that another run has taken is not changed.
    """
    writers = [small, *(Writer(job.client, job.group, lane) for lane in range(count))]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(partial(_claim, job, check_own_marker if owned else check_marker), writers))
    if all(each.is_committed for each in found):
        found = look_again(job, count) or found
    small.is_open = all(each.is_committed for each in found)
    return found


def look_again(job: LaneJob, count: int) -> list[LaneOutcome]:
    """What is wrong with the markers after the claim: lanes, claimed or not, that name another run, and claimed ones without a marker."""
    from confluent_kafka import KafkaException

    try:
        with open_group(job.client, job.group, SMALL) as consumer:
            found = markers(job, [SMALL], consumer)
        with open_group(job.client, job.group, 0) as consumer:
            partitions = consumer.list_topics(job.topic, job.seconds).topics[job.topic].partitions
            found |= markers(job, range(max(count, len(partitions))), consumer)
    except KafkaException as error:
        return [failure(SMALL, error.args[0], [])]
    return [wrong for lane, held in found.items() if (wrong := _check_name(job, lane, held, claimed=lane < count))]


def _check_name(job: LaneJob, lane: int, held: Marker | None, *, claimed: bool) -> LaneOutcome | None:
    if held is None:
        return LaneOutcome(lane, "missing", detail="the marker is gone since the lane was claimed") if claimed else None
    return None if held.run == job.run else LaneOutcome(lane, "taken", detail="the lane was claimed by another run at the same time")


def _claim(job: LaneJob, check: Check, writer: Writer) -> LaneOutcome:
    from confluent_kafka import KafkaException

    lane = writer.lane
    try:
        with writer.open_consumer() as consumer:
            writer.producer.init_transactions(job.seconds)
            lanes.reach_point("claiming", lane)
            held = marker(job, lane, consumer)
        found = check(job, lane, held)
        if found is not None and not found.is_committed:
            return found
        writer.producer.begin_transaction()
        mark(job, writer, held._replace(run=job.run) if held else Marker(job.expected.get(lane, -1), "", job.run))
        commit(job, writer)
    except KafkaException as error:
        return failure(lane, error.args[0], writer.failed)
    return found or LaneOutcome(lane, "done")
