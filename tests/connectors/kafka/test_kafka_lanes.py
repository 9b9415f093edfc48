"""One lane against a real broker: who may commit, and what a marker means. No Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.lanes import LaneJob
from millstream.connectors.kafka.worker.producers import SMALL, Writer, transactional_id
from millstream.connectors.kafka.write.lane_fencing import claim_lanes, writer_of_small_epochs
from millstream.connectors.kafka.write.properties import producer_properties
from millstream.connectors.kafka.write.target import markers


@pytest.fixture
def job(kafka: Cluster) -> LaneJob:
    topic = kafka.topic()
    client = producer_properties(KafkaSink(topic=topic, bootstrap_servers=kafka.address))
    return LaneJob(client, f"g{uuid.uuid4().hex[:6]}", topic, 0, "digest", "run", seconds=20)


def rows(*values: bytes) -> Iterator[pa.RecordBatch]:
    count = len(values)
    yield pa.RecordBatch.from_pydict({"lane": pa.array([0] * count, pa.int32()), "key": [b"k"] * count, "value": list(values)})


def later(job: LaneJob, epoch: int, digest: str = "digest", **changes: Any) -> LaneJob:
    return LaneJob(job.client, job.group, job.topic, epoch, digest, "run", seconds=20, **changes)


def test_an_epoch_is_written_once(kafka: Cluster, job: LaneJob) -> None:
    assert lanes.send(job, 0, rows(b"a", b"b")) == (0, "done", 2, "")
    assert lanes.send(job, 0, rows(b"a", b"b")) == (0, "held", 0, "")
    assert [message.value() for message in kafka.messages(job.topic)] == [b"a", b"b"]


def test_another_history_is_refused(kafka: Cluster, job: LaneJob) -> None:
    lanes.send(later(job, 3), 0, rows(b"a"))
    assert lanes.send(later(job, 3, "other"), 0, rows(b"b")).outcome == "history"
    assert lanes.send(later(job, 2), 0, rows(b"b")).outcome == "history"
    assert len(kafka.messages(job.topic)) == 1


def test_a_marker_that_is_gone_or_went_back_is_told(kafka: Cluster, job: LaneJob) -> None:
    assert lanes.send(later(job, 1, required=frozenset({0})), 0, rows(b"a")).outcome == "missing"
    assert lanes.send(job, 0, rows(b"a")).outcome == "done"
    assert lanes.send(later(job, 5, expected={0: 4}), 0, rows(b"b")).outcome == "missing"
    assert len(kafka.messages(job.topic)) == 1


@pytest.mark.parametrize("point", ["opened", "producing", "produced"])
def test_an_older_owner_cannot_commit(kafka: Cluster, job: LaneJob, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def overtaken(reached: str, lane: int) -> None:
        if reached == point:
            Producer({**job.client, "transactional.id": f"{job.group}.{lane}"}).init_transactions(20)

    monkeypatch.setattr(lanes, "reach_point", overtaken)
    assert lanes.send(job, 0, rows(b"old")).outcome == "fenced"
    monkeypatch.undo()
    assert lanes.send(job, 0, rows(b"new")).outcome == "done"
    assert [message.value() for message in kafka.messages(job.topic)] == [b"new"]


def other_writer(job: LaneJob) -> Writer:
    """A writer of lane 0 whose transactional id is its own."""
    writer = Writer(job.client, uuid.uuid4().hex, 0)
    writer.group = job.group
    return writer


def test_without_fencing_an_older_owner_commits_too(kafka: Cluster, job: LaneJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the transactional id that owners share is what makes the older one fail."""
    overtaken = []

    def overtake(reached: str, lane: int) -> None:
        if reached == "producing" and not overtaken:
            overtaken.append(lane)
            assert lanes.write(job, other_writer(job), rows(b"new")).outcome == "done"

    monkeypatch.setattr(lanes, "reach_point", overtake)
    assert lanes.write(job, other_writer(job), rows(b"old")).outcome == "done"
    assert len(kafka.messages(job.topic)) == 2


@pytest.mark.parametrize("lane", [SMALL, 0])
def test_a_claim_that_is_overtaken_fails(job: LaneJob, monkeypatch: pytest.MonkeyPatch, lane: int) -> None:
    def overtake(reached: str, at: int) -> None:
        if (reached, at) == ("claiming", lane):
            Producer({**job.client, "transactional.id": transactional_id(job.group, lane)}).init_transactions(20)

    monkeypatch.setattr(lanes, "reach_point", overtake)
    found = {each.lane: each.outcome for each in claim_lanes(job, 1, writer_of_small_epochs(job))}
    assert found == {SMALL: "done", 0: "done", lane: "fenced"}


def test_a_message_that_the_topic_refuses_is_told(kafka: Cluster, job: LaneJob) -> None:
    small = LaneJob(job.client, job.group, kafka.topic(**{"max.message.bytes": "1000"}), 0, "digest", "run", seconds=20)
    incompressible = uuid.uuid4().bytes * 200
    assert lanes.send(small, 0, rows(bytes(byte ^ (place % 251) for place, byte in enumerate(incompressible)) * 3)).outcome == "refused"


def test_a_broker_that_is_not_there_is_tried_again_later(job: LaneJob) -> None:
    away = LaneJob({**job.client, "bootstrap.servers": "127.0.0.1:1"}, job.group, job.topic, 0, "digest", "run", seconds=1)
    assert lanes.send(away, 0, rows(b"a")).outcome == "later"


def test_a_transaction_that_was_left_open_holds_nobody_up(kafka: Cluster, job: LaneJob) -> None:
    assert lanes.send(job, 0, rows(b"a")).outcome == "done"
    killed = Producer({**job.client, "transactional.id": f"{job.group}.0"})
    killed.init_transactions(20)
    killed.begin_transaction()
    group = Consumer({"bootstrap.servers": kafka.address, "group.id": job.group})
    killed.send_offsets_to_transaction([TopicPartition(job.topic, 0, 2, metadata="digest run")], group.consumer_group_metadata(), 20)
    assert markers({"bootstrap.servers": kafka.address}, job.group, job.topic, 1) == {0: (0, "digest")}
    assert lanes.send(later(job, 1), 0, rows(b"b")).outcome == "done"
    assert [message.value() for message in kafka.messages(job.topic)] == [b"a", b"b"]
