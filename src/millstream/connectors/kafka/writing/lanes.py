"""What a worker does with the rows of one lane: one transaction, with a marker inside that says which epoch it was.

The order is the proof. Opening the lane fences every earlier owner and ends its transaction; the marker is read after that, so it tells
what was committed before; whoever opens the lane later makes this commit fail. So at most one commit per lane and epoch succeeds, and an
attempt that was killed, is late, or does not know how it ended is answered by the next one: open, look at the marker, skip or write.

The marker is the lane's offset in a consumer group of the sink's own: the epoch plus one, with the epoch's digest and the run's name as
metadata. What goes wrong comes back as a row, not as an exception. The modules behind it are sent to the workers whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from millstream.connectors.kafka.writing.producing import Writer, keep, patiently, reuse
from millstream.plan.archives import forget_archives

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
    run: str
    """Who has claimed the lanes."""
    expected: Mapping[int, int] = field(default_factory=dict)
    """Lane → the epoch that its marker shows at least."""
    required: frozenset[int] = frozenset()
    """Lanes whose marker cannot be absent."""
    seconds: float = 60


class Outcome(NamedTuple):
    """How it went with a lane: `done`, `held` (it was there), `fenced`, `later` (Kafka is away), or what no other attempt can mend."""

    lane: int
    outcome: str
    rows: int = 0
    detail: str = ""


class Marker(NamedTuple):
    """The last epoch that a lane has committed, its digest, and the run that owns the lane."""

    epoch: int
    digest: str
    run: str


def publish(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for Spark's workers. Each task holds the rows of one lane, in order."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        lane, outcome, rows, detail = send(job, int(first.column("lane")[0].as_py()), itertools.chain([first], filled))
        forget_archives()
        columns = [pa.array([lane], pa.int32()), pa.array([outcome]), pa.array([rows], pa.int64()), pa.array([detail[:500]])]
        yield pa.RecordBatch.from_arrays(columns, names=["lane", "outcome", "rows", "detail"])

    return run


def send(job: Job, lane: int, batches: Iterator[pa.RecordBatch]) -> Outcome:
    """Write a lane's rows, unless they are there."""
    from confluent_kafka import KafkaException

    writer = reuse(job.client, job.group, lane, job.expected) or Writer(job.client, job.group, lane)
    try:
        found = _open(job, lane, writer)
        if found is None:
            found = Outcome(lane, "done", _transaction(job, lane, writer, batches))
            keep(writer, job.epoch)
    except KafkaException as error:
        return failure(lane, error.args[0], writer.failed)
    return found


def marker(job: Job, lane: int, group: Any) -> Marker | None:
    """What the lane says of itself."""
    from confluent_kafka import KafkaException, TopicPartition

    def ask() -> Any:
        (place,) = group.committed([TopicPartition(job.topic, lane)], timeout=job.seconds)
        if place.error is not None:  # no answer is not the answer that there is none
            raise KafkaException(place.error)
        return place

    place = patiently(job.seconds, ask)
    digest, _, run = (place.metadata or "").partition(" ")
    return Marker(place.offset - 1, digest, run) if place.offset >= 0 else None


def judge(job: Job, lane: int, held: Marker | None) -> Outcome | None:
    """What a marker means once the lanes are claimed; None: the rows are to be written."""
    if held is not None and held.run != job.run:
        return Outcome(lane, "taken", detail=f"the lane was claimed by another run, at epoch {held.epoch}")
    return weigh(job, lane, held)


def weigh(job: Job, lane: int, held: Marker | None) -> Outcome | None:
    """What a marker means, whoever wrote it."""
    if held is None:
        return Outcome(lane, "missing", detail="the marker is gone") if lane in job.required else None
    if held.epoch == job.epoch and held.digest == job.digest:
        return Outcome(lane, "held")
    if held.epoch >= job.epoch:
        return Outcome(lane, "history", detail=f"epoch {held.epoch} is there{', with other rows' if held.epoch == job.epoch else ''}")
    if held.epoch < job.expected.get(lane, -1):
        detail = f"the marker shows epoch {held.epoch}, and epoch {job.expected[lane]} was committed"
        return Outcome(lane, "missing", detail=detail)
    return None


def passing(point: str, lane: int) -> None:
    """The points between which an attempt can die; tests make it die there."""


def mark(job: Job, writer: Writer, epoch: int, digest: str) -> None:
    """The marker joins the transaction."""
    from confluent_kafka import TopicPartition

    place = TopicPartition(job.topic, writer.lane, epoch + 1, metadata=f"{digest} {job.run}")
    patiently(job.seconds, lambda: writer.producer.send_offsets_to_transaction([place], writer.metadata, job.seconds))


def commit(job: Job, writer: Writer) -> None:
    patiently(job.seconds, lambda: writer.producer.commit_transaction(job.seconds))


def failure(lane: int, error: Any, failed: list[str]) -> Outcome:
    """A transaction that is left open here is ended by the next owner of the lane."""
    names, said = [error.name(), *failed], f"{error.name()}: {error.str()}"
    refused = [name for name in names if any(sign in name for sign in _REFUSED)]
    if refused:
        return Outcome(lane, "refused", detail=f"{refused[0]}: {error.str()}")
    return Outcome(lane, "fenced" if _FENCED & set(names) else "later", detail=said)


def _open(job: Job, lane: int, writer: Writer) -> Outcome | None:
    """From here on nobody else can commit the lane. None: there is something to write."""
    if writer.epoch >= 0:
        passing("opened", lane)
        return None
    with writer.looking() as consumer:
        writer.producer.init_transactions(job.seconds)
        passing("opened", lane)
        return judge(job, lane, marker(job, lane, consumer))


def _transaction(job: Job, lane: int, writer: Writer, batches: Iterator[pa.RecordBatch]) -> int:
    writer.producer.begin_transaction()
    rows = 0
    for batch in batches:
        writer.send(job.topic, batch)
        rows += batch.num_rows
        passing("producing", lane)
    mark(job, writer, job.epoch, job.digest)
    passing("produced", lane)
    commit(job, writer)
    passing("committed", lane)
    return rows
