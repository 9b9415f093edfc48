"""Claims a sink for one run at a time.

A claim opens each lane, which fences its previous owner, and renews its marker under the name of this run, in a transaction of that lane:
if another run opens the lane meanwhile, one of the two fails. All are claimed before the first row is written. So of two copies of a
pipeline the older one finds, before it can write again, that another run owns them, and stops; they never share an epoch.
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
)
from millstream.connectors.kafka.worker.producers import SMALL, Writer

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
    small.is_open = all(each.is_committed for each in found)
    return found


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
