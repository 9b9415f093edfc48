"""One lane against a real broker: who may commit, and what a marker means. No Spark."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.lanes import LaneJob
from millstream.connectors.kafka.worker.producers import SMALL, Writer, transactional_id
from millstream.connectors.kafka.write import lane_fencing
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


class Copies:
    """Two copies of a pipeline, A and B, which claim at the same time: A wins the lane of small epochs, B the others."""

    def __init__(self, kafka: Cluster, job: LaneJob, lanes_of_a: int, lanes_of_b: int) -> None:
        self.kafka = kafka
        self.a, self.b = (replace(job, topic=kafka.topic(4), run=run, digest=run) for run in "AB")
        self.b = replace(self.b, topic=self.a.topic)
        self.small = {run.run: writer_of_small_epochs(run) for run in (self.a, self.b)}
        self.counts = {"A": lanes_of_a, "B": lanes_of_b}
        self.outcomes: dict[str, set[str]] = {}

    def claim(self, job: LaneJob) -> None:
        self.outcomes[job.run] = {each.outcome for each in claim_lanes(job, self.counts[job.run], self.small[job.run])}

    def claim_together(self, patched: pytest.MonkeyPatch, *, b_looks_last: bool) -> None:
        """B claims everything while A has claimed its lanes and not that of small epochs. B looks again before or after A does so."""
        claim, look = lane_fencing._claim, lane_fencing.look_again
        a_lanes, b_claimed, a_done = threading.Semaphore(0), threading.Event(), threading.Event()

        def ordered(job: LaneJob, check: Any, writer: Writer) -> Any:
            if job.run == "A" and writer.lane == SMALL:
                assert b_claimed.wait(20)
            found = claim(job, check, writer)
            if job.run == "A" and writer.lane != SMALL:
                a_lanes.release()
            return found

        def looking(job: LaneJob, count: int) -> Any:
            if job.run == "B" and b_looks_last:
                b_claimed.set()
                assert a_done.wait(20)
            return look(job, count)

        with patched.context() as context:
            context.setattr(lane_fencing, "_claim", ordered)
            context.setattr(lane_fencing, "look_again", looking)
            thread = threading.Thread(target=self.claim, args=[self.a])
            thread.start()
            assert all(a_lanes.acquire(timeout=20) for _ in range(self.counts["A"]))
            other = threading.Thread(target=self.claim, args=[self.b])
            other.start()
            if not b_looks_last:
                other.join()
                b_claimed.set()
            thread.join()
            a_done.set()
            other.join()

    def write(self) -> list[bytes]:
        """Each copy that may goes on: A with a small epoch, B with the same epoch, which has become large."""
        if self.outcomes["A"] == {"done"}:
            assert lanes.write(self.a, self.small["A"], rows(b"r1", b"r2")).outcome == "done"
        if self.outcomes["B"] == {"done"}:
            assert lanes.send(self.b, 0, rows(b"r1", b"r2", b"r3")).outcome == "done"
        return [message.value() for message in self.kafka.messages(self.a.topic)]


@pytest.mark.parametrize(("of_a", "of_b"), [(4, 4), (2, 4), (4, 2)])
@pytest.mark.parametrize("b_looks_last", [True, False])
def test_of_two_copies_that_claim_at_the_same_time_one_writes_at_most(
    kafka: Cluster, job: LaneJob, monkeypatch: pytest.MonkeyPatch, of_a: int, of_b: int, b_looks_last: bool
) -> None:
    copies = Copies(kafka, job, of_a, of_b)
    copies.claim_together(monkeypatch, b_looks_last=b_looks_last)
    assert copies.outcomes["A"] == {"taken"}
    b_sees_a = b_looks_last or of_a > of_b
    assert copies.outcomes["B"] == ({"taken"} if b_sees_a else {"done"})
    written = copies.write()
    assert sorted(written) == ([] if b_sees_a else [b"r1", b"r2", b"r3"])


def test_without_the_second_look_both_copies_write_one_epoch(kafka: Cluster, job: LaneJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a small epoch and a large one have no lane in common."""
    monkeypatch.setattr(lane_fencing, "look_again", lambda *_: [])
    copies = Copies(kafka, job, 4, 4)
    copies.claim_together(monkeypatch, b_looks_last=True)
    assert sorted(copies.write()) == [b"r1", b"r1", b"r2", b"r2", b"r3"]


def test_a_claim_sees_lanes_of_another_run_that_it_does_not_use_itself(kafka: Cluster, job: LaneJob) -> None:
    copies = Copies(kafka, job, 4, 2)
    copies.claim(copies.a)
    copies.claim(copies.b)  # it has looked for lanes in use before A claimed
    assert copies.outcomes == {"A": {"done"}, "B": {"taken"}}
    copies.counts["B"], copies.small["B"] = 4, writer_of_small_epochs(copies.b)
    copies.claim(copies.b)
    assert copies.outcomes["B"] == {"done"}
    assert lanes.write(copies.a, copies.small["A"], rows(b"a")).outcome == "fenced"
    assert lanes.send(copies.a, 3, rows(b"a")).outcome == "taken"


@pytest.mark.parametrize("lane", [SMALL, 1])
def test_the_second_look_waits_for_a_marker_that_is_in_a_transaction(
    kafka: Cluster, job: LaneJob, monkeypatch: pytest.MonkeyPatch, lane: int
) -> None:
    """Also for the first marker of a lane."""
    own, other = (replace(job, topic=kafka.topic(4), run=run, seconds=20) for run in ("own", "other"))
    other, writer = replace(other, topic=own.topic), Writer(job.client, job.group, lane)
    look = lane_fencing.look_again

    def looking(job: LaneJob, count: int) -> Any:
        with writer.open_consumer():
            writer.producer.init_transactions(20)
            writer.producer.begin_transaction()
            lanes.mark(other, writer, lanes.Marker(-1, "", other.run))
        timer = threading.Timer(1, lanes.commit, [other, writer])
        timer.start()
        found = look(job, count)
        timer.join()
        return found

    monkeypatch.setattr(lane_fencing, "look_again", looking)
    assert [each[:2] for each in claim_lanes(own, 1, writer_of_small_epochs(own))] == [(lane, "taken")]


def test_a_message_that_the_topic_refuses_is_told(kafka: Cluster, job: LaneJob) -> None:
    small = LaneJob(job.client, job.group, kafka.topic(**{"max.message.bytes": "1000"}), 0, "digest", "run", seconds=20)
    incompressible = uuid.uuid4().bytes * 200
    assert lanes.send(small, 0, rows(bytes(byte ^ (place % 251) for place, byte in enumerate(incompressible)) * 3)).outcome == "refused"


def test_a_broker_that_is_not_there_is_tried_again_later(job: LaneJob) -> None:
    away = LaneJob({**job.client, "bootstrap.servers": "127.0.0.1:1"}, job.group, job.topic, 0, "digest", "run", seconds=1)
    assert lanes.send(away, 0, rows(b"a")).outcome == "later"


def test_a_transaction_that_was_left_open_does_not_delay_the_next_owner(kafka: Cluster, job: LaneJob) -> None:
    assert lanes.send(job, 0, rows(b"a")).outcome == "done"
    killed = Producer({**job.client, "transactional.id": f"{job.group}.0"})
    killed.init_transactions(20)
    killed.begin_transaction()
    group = Consumer({"bootstrap.servers": kafka.address, "group.id": job.group})
    killed.send_offsets_to_transaction([TopicPartition(job.topic, 0, 2, metadata="digest run")], group.consumer_group_metadata(), 20)
    assert markers({"bootstrap.servers": kafka.address}, job.group, job.topic, 1) == {0: (0, "digest")}
    assert lanes.send(later(job, 1), 0, rows(b"b")).outcome == "done"
    assert [message.value() for message in kafka.messages(job.topic)] == [b"a", b"b"]
