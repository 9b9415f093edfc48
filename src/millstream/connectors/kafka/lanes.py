"""What a worker does with the rows of one lane: one transaction, with a marker inside that says which epoch it was.

The order is the proof. Opening the lane fences every earlier owner and ends its transaction; the marker is read after that, so it tells
what was committed before; whoever opens the lane later makes this commit fail. So at most one commit per lane and epoch succeeds, and an
attempt that was killed, is late, or does not know how it ended is answered by the next one: open, look at the marker, skip or write.

The marker is the lane's offset in a consumer group of the sink's own: the epoch plus one, with the epoch's digest as metadata. What goes
wrong comes back as a row, not as an exception. The modules behind it are sent to the workers whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.connectors.kafka.archives import forget_archives
from millstream.connectors.kafka.producing import Writer, keep, patiently, reuse

OUTCOME = "lane int, outcome string, rows long, detail string"
_FENCED = {"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"}
_REFUSED = ("AUTHORIZATION_FAILED", "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TRANSACTION_TIMEOUT")


@dataclass(frozen=True)
class Job:
    """One epoch of one sink."""

    client: Mapping[str, Any]
    """Properties of librdkafka."""
    group: str
    """The sink's identity: the group of its markers, and the beginning of its transactions' names."""
    topic: str
    epoch: int
    digest: str
    expected: Mapping[int, int] = field(default_factory=dict)
    """Lane → the epoch that its marker shows at least."""
    required: frozenset[int] = frozenset()
    """Lanes whose marker cannot be absent."""
    seconds: float = 60


def publish(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for Spark's workers. Each task holds the rows of one lane, in order."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        lane = int(first.column("lane")[0].as_py())
        outcome, rows, detail = send(job, lane, itertools.chain([first], filled))
        forget_archives()
        columns = [pa.array([lane], pa.int32()), pa.array([outcome]), pa.array([rows], pa.int64()), pa.array([detail[:500]])]
        yield pa.RecordBatch.from_arrays(columns, names=["lane", "outcome", "rows", "detail"])

    return run


def send(job: Job, lane: int, batches: Iterator[pa.RecordBatch]) -> tuple[str, int, str]:
    """How it went, how many rows, and a word about it."""
    from confluent_kafka import KafkaException

    writer = reuse(job.client, job.group, lane, job.expected) or Writer(job.client, job.group, lane)
    try:
        found = _open(job, lane, writer)
        rows = 0 if found else _transaction(job, lane, writer, batches)
    except KafkaException as error:
        return _failure(error.args[0], writer.failed)
    if found is None:
        keep(writer, job.epoch)
    return found or ("done", rows, "")


def marker(job: Job, lane: int, group: Any) -> tuple[int, str] | None:
    """The last epoch that the lane has committed, and its digest."""
    from confluent_kafka import KafkaException, TopicPartition

    def ask() -> Any:
        (place,) = group.committed([TopicPartition(job.topic, lane)], timeout=job.seconds)
        if place.error is not None:  # no answer is not the answer that there is none
            raise KafkaException(place.error)
        return place

    place = patiently(job.seconds, ask)
    return (place.offset - 1, place.metadata or "") if place.offset >= 0 else None


def judge(job: Job, lane: int, held: tuple[int, str] | None) -> tuple[str, int, str] | None:
    """What a marker means; None: the rows are to be written."""
    if held is None:
        return ("missing", 0, "the marker is gone") if lane in job.required else None
    epoch, digest = held
    if epoch == job.epoch:
        return ("held", 0, "") if digest == job.digest else ("history", 0, f"epoch {epoch} is there, with other rows")
    if epoch > job.epoch:
        return "history", 0, f"epoch {epoch} is there"
    if epoch < job.expected.get(lane, -1):
        return "missing", 0, f"the marker shows epoch {epoch}, and epoch {job.expected[lane]} was committed"
    return None


def passing(point: str, lane: int) -> None:
    """The points between which an attempt can die; tests make it die there."""


def _open(job: Job, lane: int, writer: Writer) -> tuple[str, int, str] | None:
    """From here on nobody else can commit the lane. None: there is something to write."""
    if writer.epoch >= 0:
        passing("opened", lane)
        return None
    with writer.looking() as consumer:
        writer.producer.init_transactions(job.seconds)
        passing("opened", lane)
        return judge(job, lane, marker(job, lane, consumer))


def _transaction(job: Job, lane: int, writer: Writer, batches: Iterator[pa.RecordBatch]) -> int:
    from confluent_kafka import TopicPartition

    writer.producer.begin_transaction()
    rows = 0
    for batch in batches:
        writer.send(job.topic, batch)
        rows += batch.num_rows
        passing("producing", lane)
    mark = TopicPartition(job.topic, lane, job.epoch + 1, metadata=job.digest)
    patiently(job.seconds, lambda: writer.producer.send_offsets_to_transaction([mark], writer.metadata, job.seconds))
    passing("produced", lane)
    patiently(job.seconds, lambda: writer.producer.commit_transaction(job.seconds))
    passing("committed", lane)
    return rows


def _failure(error: Any, failed: list[str]) -> tuple[str, int, str]:
    """A transaction that is left open here is ended by the next owner of the lane."""
    names = [error.name(), *failed]
    refused = [name for name in names if any(sign in name for sign in _REFUSED)]
    if refused:
        return "refused", 0, f"{refused[0]}: {error.str()}"
    return ("fenced" if _FENCED & set(names) else "later"), 0, f"{error.name()}: {error.str()}"
