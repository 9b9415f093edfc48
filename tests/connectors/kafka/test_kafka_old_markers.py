"""Kafka deletes markers after some days: a long run renews them, and a late restart does not read "no marker" as "no rows"."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]  # the package does not list its names
from tests.connectors.kafka.stage import Stage, only_large, stage
from tests.connectors.kafka.test_kafka_small_epochs import ending_at

from millstream.connectors.kafka.sink import KafkaSinkRun
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.write import claim, delivery, lane_fencing
from millstream.connectors.kafka.write.epoch_log import EpochLog
from millstream.connectors.kafka.write.lane_fencing import claim_lanes, writer_of_small_epochs

pytestmark = pytest.mark.spark
__all__ = ["stage"]


def delete_markers(stage: Stage) -> None:
    admin = AdminClient({"bootstrap.servers": stage.kafka.address})
    for future in admin.delete_consumer_groups([stage.group(), f"{stage.group()}.small"]).values():
        with suppress(KafkaException):  # a group that does not exist
            future.result(20)


@pytest.mark.parametrize("renewed", [True, False])
def test_markers_are_renewed_during_a_long_run(stage: Stage, monkeypatch: pytest.MonkeyPatch, renewed: bool) -> None:
    """The control: without it the next large epoch cannot be written."""
    stage_rows = KafkaSinkRun.stage

    def after_days(self: KafkaSinkRun, frame: Any, epoch: Any) -> Any:
        if epoch.number == 1:
            delete_markers(stage)
            only_large(monkeypatch)
            if renewed:
                monkeypatch.setattr(claim, "_DAY", -1)
        return stage_rows(self, frame, epoch)

    monkeypatch.setattr(KafkaSinkRun, "stage", after_days)
    if renewed:
        stage.go(70)
        assert stage.once()
    else:
        assert stage.code(70) == "MS096"


def test_a_restart_after_days_does_not_write_an_epoch_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with ending_at("committed", monkeypatch):
        stage.code(20)
    assert len(stage.rows()) == 20
    delete_markers(stage)
    monkeypatch.setattr(claim, "_DAY", -1)
    assert stage.code(0) == "MS096"
    assert len(stage.rows()) == 20


def test_rows_of_a_lane_without_a_plan_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the pipeline has begun the epoch: the rows of its lanes must not be written again as a small epoch."""
    only_large(monkeypatch)
    with ending_at("committed", monkeypatch, 0):
        stage.code(20)
    monkeypatch.setattr(delivery.EpochLog, "plan", lambda *_: None)
    assert stage.code(0) == "MS055"


@pytest.mark.parametrize("written", [True, False], ids=["has written", "has claimed"])
def test_a_renewal_takes_nothing_back_from_a_newer_run(stage: Stage, monkeypatch: pytest.MonkeyPatch, written: bool) -> None:
    """A copy has claimed the lanes during the night. The older run stops, and the rows of the newer one stay as they are."""
    stage_rows, newer = KafkaSinkRun.stage, list[Any]()

    def after_days(self: KafkaSinkRun, frame: Any, epoch: Any) -> Any:
        if epoch.number == 1:
            delivery_ = self._delivery(epoch)
            own = delivery_.lanes
            job = lanes.LaneJob(own.writing, own.group, own.topic, epoch.number, epoch.digest, "newer", seconds=20)
            writer, rows = writer_of_small_epochs(job), delivery_.small.collect(frame)
            assert all(each.is_committed for each in claim_lanes(job, 4, writer))
            newer[:] = [job, rows]
            if written:
                assert lanes.write(job, writer, iter(rows.to_batches())).outcome == "done"
            monkeypatch.setattr(claim, "_DAY", -1)
        return stage_rows(self, frame, epoch)

    monkeypatch.setattr(KafkaSinkRun, "stage", after_days)
    assert stage.code(60) == "MS095"
    job, rows = newer
    outcome = lanes.write(job, writer_of_small_epochs(job), iter(rows.to_batches())).outcome
    assert outcome == ("held" if written else "done")
    assert stage.once()


def test_a_renewal_that_is_overtaken_leaves_the_lanes_to_the_newer_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy claims all lanes between two steps of a renewal. A restart of the older run would take them back."""
    stage_rows, check, newer = KafkaSinkRun.stage, lane_fencing.check_own_marker, list[Any]()

    def after_days(self: KafkaSinkRun, frame: Any, epoch: Any) -> Any:
        if epoch.number == 1:
            own = self._delivery(epoch).lanes
            newer.append(lanes.LaneJob(own.writing, own.group, own.topic, epoch.number, epoch.digest, "newer", seconds=20))
            newer.append(writer_of_small_epochs(newer[0]))
            monkeypatch.setattr(claim, "_DAY", -1)
        return stage_rows(self, frame, epoch)

    def overtaken(job: Any, lane: int, held: Any) -> Any:
        found = check(job, lane, held)
        if lane == 3 and len(newer) == 2:
            newer.append(claim_lanes(newer[0], 4, newer[1]))
        return found

    monkeypatch.setattr(lane_fencing, "_AT_ONCE", 1)  # the last lane comes last
    monkeypatch.setattr(lane_fencing, "check_own_marker", overtaken)
    monkeypatch.setattr(KafkaSinkRun, "stage", after_days)
    assert stage.code(60) == "MS095"
    job, writer, outcomes = newer
    assert all(each.is_committed for each in outcomes)
    assert lanes.write(job, writer, iter([])).outcome == "fenced"  # the older run has looked once more
    assert lanes.write(job, writer_of_small_epochs(job), iter([])).outcome == "done"  # and has changed nothing


@pytest.mark.parametrize("by_name", [True, False])
def test_a_run_that_has_finished_an_older_plan_does_not_note_the_rest(stage: Stage, monkeypatch: pytest.MonkeyPatch, by_name: bool) -> None:
    """The half-done epoch has a run object of its own, with its own claim. The next epoch fails after its commit. The control: a rest that
    is noted under any name lets the next start write that epoch again.
    """
    stage.go(5, "lanes: 4, linger: 3ms")
    stage.half_done(monkeypatch, 10, options="lanes: 4, linger: 3ms")
    stage.send(20)
    if not by_name:
        rest = EpochLog.record_rest
        monkeypatch.setattr(EpochLog, "record_rest", lambda log, run: rest(log, log._load().run))
    with ending_at("committed", monkeypatch):
        stage.code(0, options="lanes: 4, linger: 7ms")
    assert stage.once()
    delete_markers(stage)
    monkeypatch.setattr(claim, "_DAY", -1)
    if by_name:
        assert stage.code(0, options="lanes: 4, linger: 7ms") == "MS096"
        assert stage.once()
    else:
        stage.go(0, "lanes: 4, linger: 7ms")
        assert len(stage.rows()) == 55


def test_a_redelivery_that_was_cut_off_days_ago_does_not_write_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.go(30)
    stage.target = stage.kafka.topic(4)
    assert stage.code(0) == "MS140"
    with ending_at("committed", monkeypatch):
        stage.code(0, redeliver=True)
    delete_markers(stage)
    monkeypatch.setattr(claim, "_DAY", -1)
    assert stage.code(0, redeliver=True) == "MS096"
    assert len(stage.rows()) == 30


def test_a_run_that_was_stopped_goes_on_after_days(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped when an epoch was planned and nothing of it written: nothing is unknown."""
    stop, commit = threading.Event(), KafkaSinkRun.commit

    def stopping(self: KafkaSinkRun, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        if epoch.number == 1:
            stop.set()

    with monkeypatch.context() as patched:
        patched.setattr(KafkaSinkRun, "commit", stopping)
        stage.go(300, stop=stop)
    planned, committed = (len(list(stage.folder.glob(f"checkpoint/queries/*/{kind}/[0-9]*"))) for kind in ("offsets", "commits"))
    assert planned == committed + 1
    delete_markers(stage)
    monkeypatch.setattr(claim, "_DAY", -1)
    stage.go(0)
    assert stage.once()
