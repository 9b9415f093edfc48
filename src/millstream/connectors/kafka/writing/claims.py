"""The lanes of a sink belong to one run at a time: the one that claimed them last.

A claim opens a lane, which fences whoever had it, and renews its marker under the name of this run. All lanes are claimed before the
first row is written. So of two copies of a pipeline the older one finds, before it can write into any lane again, that the lane is
another's, and ends; they never divide an epoch between them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from millstream.connectors.kafka.writing.lanes import Job, Outcome, commit, failure, mark, marker, weigh
from millstream.connectors.kafka.writing.producing import Writer

_AT_ONCE = 8


def claim(job: Job, lanes: int) -> list[Outcome]:
    """Take the lanes over. What does not fit what the logbook says is not touched, and comes back."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_claimed, job), range(lanes)))


def _claimed(job: Job, lane: int) -> Outcome:
    from confluent_kafka import KafkaException

    writer = Writer(job.client, job.group, lane)
    try:
        with writer.looking() as consumer:
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
    return Outcome(lane, "done")
