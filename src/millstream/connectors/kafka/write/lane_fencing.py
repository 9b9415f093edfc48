"""Claims the lanes of a sink for one run at a time.

A claim opens a lane, which fences its previous owner, and renews its marker under the name of this run. All lanes are claimed before the
first row is written. So of two copies of a pipeline the older one finds, before it can write again, that another run owns the lane, and
stops; they never share an epoch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from millstream.connectors.kafka.worker.lanes import LaneJob, LaneOutcome, commit, failure, mark, marker, weigh
from millstream.connectors.kafka.worker.producers import Writer

_AT_ONCE = 8


def claim_lanes(job: LaneJob, lanes: int) -> list[LaneOutcome]:
    """Take over the lanes. A lane that does not match the log is not changed, and is returned."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_claim, job), range(lanes)))


def _claim(job: LaneJob, lane: int) -> LaneOutcome:
    from confluent_kafka import KafkaException

    writer = Writer(job.client, job.group, lane)
    try:
        with writer.open_consumer() as consumer:
            writer.producer.init_transactions(job.seconds)
            held = marker(job, lane, consumer)
        found = weigh(job, lane, held)
        if found is not None and found.outcome != "held":
            return found
        writer.producer.begin_transaction()
        mark(job, writer, held.epoch if held else -1, held.digest if held else "")
        commit(job, writer)
    except KafkaException as error:
        return failure(lane, error.args[0], writer.failed)
    return LaneOutcome(lane, "done")
