"""Writes the rows of one lane in one transaction, with a marker that contains the epoch.

The order is the proof. Opening a writer fences every earlier owner of its transactional id and ends its transaction; the marker is read
after that, so it shows what was committed before; a later owner makes this commit fail. So at most one commit per lane and epoch succeeds.
After an attempt that was killed, is late, or has an unknown result, the next one does the same: open, read the marker, skip or write.
The marker is the lane's offset in a consumer group of the sink: the epoch plus one, with the epoch's digest and the run's name as metadata.
The lanes 0, 1, … divide the rows of a large epoch, and workers write them. The lane `SMALL` has all rows of a small epoch, and the driver
writes it: its marker shows that the whole epoch is there. It has a transactional id and a marker of its own, as every lane.
A failure is returned as a row, not raised as an exception. This package is pickled to the workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from millstream.connectors.kafka.worker.producers import Writer, keep, marker_partition, retry_step, reuse
from millstream.worker.archives import forget_archives

OUTCOME = "lane int, outcome string, rows long, detail string"
_FENCED = {"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"}
_MARK_SECONDS = 10
_REFUSED = ("AUTHORIZATION_FAILED", "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TRANSACTION_TIMEOUT")


@dataclass(frozen=True)
class LaneJob:
    """One epoch of one sink."""

    client: Mapping[str, Any]
    """Properties of librdkafka."""
    group: str
    """The sink's identity: the group of its markers, and the prefix of its transactional ids."""
    topic: str
    epoch: int
    digest: str
    run: str
    """The run that has claimed the lanes."""
    expected: Mapping[int, int] = field(default_factory=dict)
    """Lane → the minimum epoch that its marker must show."""
    required: frozenset[int] = frozenset()
    """Lanes whose marker must exist."""
    seconds: float = 60


Outcome = Literal["done", "held", "fenced", "later", "history", "taken", "missing", "refused"]
"""`done`; `held`: already committed; `fenced`; `later`: Kafka does not answer; the others are permanent failures."""


class LaneOutcome(NamedTuple):
    """The result of a lane."""

    lane: int
    outcome: Outcome
    rows: int = 0
    detail: str = ""

    @property
    def is_committed(self) -> bool:
        return self.outcome in {"done", "held"}


class Marker(NamedTuple):
    """The last epoch that a lane has committed, its digest, and the run that owns the lane."""

    epoch: int
    digest: str
    run: str


def publish(job: LaneJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for Spark's workers. Each task has the rows of one lane, in order."""

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


def send(job: LaneJob, lane: int, batches: Iterator[pa.RecordBatch]) -> LaneOutcome:
    """Write a lane's rows on a worker, which keeps the writer for the next epoch."""
    writer = reuse(job.client, job.group, lane, job.expected) or Writer(job.client, job.group, lane)
    found = write(job, writer, batches)
    if found.outcome == "done":
        keep(writer, job.epoch)
    return found


def write(job: LaneJob, writer: Writer, batches: Iterator[pa.RecordBatch]) -> LaneOutcome:
    """Write rows, unless they are already committed. After a failure the writer must not be used again: its transaction may be open."""
    from confluent_kafka import KafkaException

    try:
        return _open(job, writer) or LaneOutcome(writer.lane, "done", _transaction(job, writer, batches))
    except KafkaException as error:
        return failure(writer.lane, error.args[0], writer.failed)


def marker(job: LaneJob, lane: int, group: Any) -> Marker | None:
    """Read the lane's marker."""
    return markers(job, [lane], group)[lane]


def markers(job: LaneJob, lanes: Sequence[int], group: Any) -> dict[int, Marker | None]:
    """Read the markers of lanes that share a group, all at the same time. Each lane is named: Kafka would leave out of a list of all those
    whose first marker is still in a transaction.
    """
    from confluent_kafka import KafkaException, TopicPartition

    def ask() -> Any:
        places = group.committed([TopicPartition(job.topic, marker_partition(lane)) for lane in lanes], timeout=job.seconds)
        for place in places:
            if place.error is not None:  # a missing answer does not mean a missing marker
                raise KafkaException(place.error)
        return {place.partition: place for place in places}

    found = retry_step(job.seconds, ask)
    return {lane: _marker_of(found[marker_partition(lane)]) for lane in lanes}


def _marker_of(place: Any) -> Marker | None:
    digest, _, run = str(place.metadata or "").partition(" ")
    return Marker(place.offset - 1, digest, run) if place.offset >= 0 else None


def check_own_marker(job: LaneJob, lane: int, held: Marker | None) -> LaneOutcome | None:
    """The consequence of a marker once the lanes are claimed; None: the rows must be written."""
    if held is not None and held.run != job.run:
        return LaneOutcome(lane, "taken", detail=f"the lane was claimed by another run, at epoch {held.epoch}")
    return check_marker(job, lane, held)


def check_marker(job: LaneJob, lane: int, held: Marker | None) -> LaneOutcome | None:
    """The consequence of a marker of any run."""
    if held is None:
        return LaneOutcome(lane, "missing", detail="the marker is gone") if lane in job.required else None
    if held.epoch == job.epoch and held.digest == job.digest:
        return LaneOutcome(lane, "held")
    if held.epoch >= job.epoch:
        return LaneOutcome(lane, "history", detail=f"epoch {held.epoch} is there{', with other rows' if held.epoch == job.epoch else ''}")
    if held.epoch < job.expected.get(lane, -1):
        detail = f"the marker shows epoch {held.epoch}, and epoch {job.expected[lane]} was committed"
        return LaneOutcome(lane, "missing", detail=detail)
    return None


def reach_point(point: str, lane: int) -> None:
    """A hook at the points where an attempt can die; tests replace it."""


def mark(job: LaneJob, writer: Writer, held: Marker) -> None:
    """Add the marker to the transaction."""
    from confluent_kafka import TopicPartition

    place = TopicPartition(job.topic, marker_partition(writer.lane), held.epoch + 1, metadata=f"{held.digest} {held.run}")

    def add() -> None:
        writer.producer.poll(0)
        writer.require_delivery()  # the client would wait for a topic that was deleted
        writer.producer.send_offsets_to_transaction([place], writer.metadata, min(_MARK_SECONDS, job.seconds))

    retry_step(job.seconds, add)


def commit(job: LaneJob, writer: Writer) -> None:
    retry_step(job.seconds, lambda: writer.producer.commit_transaction(job.seconds))


def failure(lane: int, error: Any, failed: list[str]) -> LaneOutcome:
    """The result of a failure. The next owner of the lane ends a transaction that is left open here."""
    names, said = [error.name(), *failed], f"{error.name()}: {error.str()}"
    refused = [name for name in names if any(sign in name for sign in _REFUSED)]
    if refused:
        return LaneOutcome(lane, "refused", detail=f"{refused[0]}: {error.str()}")
    return LaneOutcome(lane, "fenced" if _FENCED & set(names) else "later", detail=said)


def _open(job: LaneJob, writer: Writer) -> LaneOutcome | None:
    """Open the writer: no other owner can commit after this. None: there is something to write."""
    if writer.is_open:
        reach_point("opened", writer.lane)
        return None
    with writer.open_consumer() as consumer:
        writer.producer.init_transactions(job.seconds)
        reach_point("opened", writer.lane)
        found = check_own_marker(job, writer.lane, marker(job, writer.lane, consumer))
    writer.is_open = found is None
    return found


def _transaction(job: LaneJob, writer: Writer, batches: Iterator[pa.RecordBatch]) -> int:
    writer.producer.begin_transaction()
    rows = 0
    for batch in batches:
        writer.send(job.topic, batch)
        rows += batch.num_rows
        reach_point("producing", writer.lane)
    mark(job, writer, Marker(job.epoch, job.digest, job.run))
    reach_point("produced", writer.lane)
    commit(job, writer)
    reach_point("committed", writer.lane)
    return rows
