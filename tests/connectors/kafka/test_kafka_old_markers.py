"""Kafka deletes markers after some days: a long run renews them, and a late restart does not read "no marker" as "no rows"."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]  # the package does not list its names
from tests.connectors.kafka.stage import Stage, only_large, stage
from tests.connectors.kafka.test_kafka_small_epochs import ending_at

from millstream.connectors.kafka.sink import KafkaSinkRun
from millstream.connectors.kafka.write import delivery

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
                monkeypatch.setattr(delivery, "_DAY", -1)
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
    monkeypatch.setattr(delivery, "_DAY", -1)
    assert stage.code(0) == "MS096"
    assert len(stage.rows()) == 20


def test_rows_of_a_lane_without_a_plan_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the pipeline has begun the epoch: the rows of its lanes must not be written again as a small epoch."""
    only_large(monkeypatch)
    with ending_at("committed", monkeypatch, 0):
        stage.code(20)
    monkeypatch.setattr(delivery.EpochLog, "plan", lambda *_: None)
    assert stage.code(0) == "MS055"
