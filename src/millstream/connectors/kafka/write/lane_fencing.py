"""Claims a sink for one run at a time.

A claim opens the lanes and the writer of small epochs, which fences their previous owners, and renews the markers under the name of this
run. All are claimed before the first row is written. So of two copies of a pipeline the older one finds, before it can write again, that
another run owns them, and stops; they never share an epoch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from millstream.connectors.kafka.worker.lanes import LaneJob, LaneOutcome, Marker, commit, failure, mark, marker, weigh
from millstream.connectors.kafka.worker.producers import Writer

_AT_ONCE = 8
_SMALL = "small"


def writer_of_small_epochs(job: LaneJob) -> Writer:
    """Its transactional id is not that of a lane: large epochs do not fence it."""
    return Writer(job.client, job.group, _SMALL)


def claim_lanes(job: LaneJob, lanes: int, small: Writer) -> list[LaneOutcome]:
    """Take over the lanes, and open the writer of small epochs. A lane that does not match the log is not changed, and is returned."""
    from confluent_kafka import KafkaException

    try:
        with small.open_consumer():  # before markers are read: its last owner may have left a transaction open
            small.producer.init_transactions(job.seconds)
    except KafkaException as error:
        return [failure(0, error.args[0], small.failed)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(partial(_claim, job), range(lanes)))
    small.is_open = all(each.is_committed for each in found)
    return found


def _claim(job: LaneJob, lane: int) -> LaneOutcome:
    from confluent_kafka import KafkaException

    writer = Writer(job.client, job.group, str(lane))
    try:
        with writer.open_consumer() as consumer:
            writer.producer.init_transactions(job.seconds)
            held = marker(job, lane, consumer)
        found = weigh(job, lane, held)
        if found is not None and not found.is_committed:
            return found
        writer.producer.begin_transaction()
        mark(job, lane, writer, held._replace(run=job.run) if held else Marker(-1, "", job.run))
        commit(job, writer)
    except KafkaException as error:
        return failure(lane, error.args[0], writer.failed)
    return found or LaneOutcome(lane, "done")
