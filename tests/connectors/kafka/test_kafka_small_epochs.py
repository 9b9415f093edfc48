"""A small epoch is one transaction of the driver: it is there once, wherever an attempt ends and however it is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.connectors.kafka.stage import Stage, only_large, stage

from millstream.connectors.kafka.sink import KafkaSinkRun
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.producers import SMALL, Writer
from millstream.connectors.kafka.write import delivery, lane_fencing, publisher
from millstream.connectors.kafka.write.lane_fencing import writer_of_small_epochs

pytestmark = pytest.mark.spark
__all__ = ["stage"]


@contextmanager
def ending_at(point: str, monkeypatch: pytest.MonkeyPatch, lane: int = SMALL) -> Iterator[None]:
    """The first attempt of the body that reaches the point ends there, as if the driver had died."""

    def passing(reached: str, at: int) -> None:
        if (reached, at) == (point, lane):
            raise OSError("the driver dies here")

    with monkeypatch.context() as patched:
        patched.setattr(lanes, "reach_point", passing)
        yield


def spy(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """The calls of a way to publish."""
    calls: list[str] = []
    original: Callable[..., Any] = getattr(delivery, name)

    def counting(*words: Any) -> Any:
        calls.append(name)
        return original(*words)

    monkeypatch.setattr(delivery, name, counting)
    return calls


@pytest.mark.parametrize(
    ("point", "large"),
    [("opened", True), ("producing", False), ("produced", True), ("produced", False), ("committed", True), ("committed", False)],
)
def test_an_attempt_that_ends_anywhere_is_repeated_in_either_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, point: str, large: bool
) -> None:
    stage.go(10)
    with ending_at(point, monkeypatch):
        stage.code(20)
    assert len(stage.rows()) == (30 if point == "committed" else 10)
    if large:
        only_large(monkeypatch)
    stage.go(40)
    assert stage.once()


def test_without_the_marker_rows_come_twice(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the marker is what tells that the transaction was committed."""
    stage.go(10)
    with ending_at("committed", monkeypatch):
        stage.code(20)
    monkeypatch.setattr(lane_fencing, "check_marker", lambda *_: None)
    stage.go(0)
    assert sorted(row["n"] for row in stage.rows()) == sorted([*range(30), *range(10, 30)])


def test_the_writer_is_opened_once_for_many_epochs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, small = [], spy(monkeypatch, "publish_small")
    create = Writer.__init__

    def counting(self: Writer, client: Any, group: str, lane: int) -> None:
        opened.append(lane)
        create(self, client, group, lane)

    monkeypatch.setattr(Writer, "__init__", counting)
    stage.go(140)
    assert sorted(opened) == [SMALL, 0, 1, 2, 3] and len(small) == 5
    assert stage.once()


def test_a_writer_that_is_fenced_while_it_is_open_is_opened_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = KafkaSinkRun.commit

    def fencing(self: Any, staged: Any, epoch: Any) -> None:
        if epoch.number == 1:
            other = Producer({"bootstrap.servers": stage.kafka.address, "transactional.id": f"{stage.group()}.small"})
            other.init_transactions(20)
        commit(self, staged, epoch)

    monkeypatch.setattr(KafkaSinkRun, "commit", fencing)
    opened = []
    monkeypatch.setattr(publisher, "writer_of_small_epochs", lambda job: opened.append(job) or writer_of_small_epochs(job))
    stage.go(70)
    assert stage.once() and len(opened) == 1


def test_large_epochs_go_by_lanes_and_small_ones_follow(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = spy(monkeypatch, "publish_small"), spy(monkeypatch, "publish")
    sql = "SELECT k, n, repeat('x', if(n >= 30 AND n < 60, 17000, 1)) AS t FROM m"
    stage.go(150, sql=sql)
    assert (len(small), len(large)) == (3, 2)  # after a vain attempt the next epoch is not tried
    assert stage.once()


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("marked", [True, False])
def test_a_commit_whose_answer_is_lost_is_found_by_the_same_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, large: bool, marked: bool
) -> None:
    """The control: without the marker the rows come twice."""
    commit, token = lanes.commit, stage.folder / "token"
    token.touch()

    def losing(job: lanes.LaneJob, writer: Writer) -> None:
        from confluent_kafka import KafkaError, KafkaException  # it travels to the workers

        commit(job, writer)
        if job.epoch != 1:
            return
        try:
            token.unlink()
        except FileNotFoundError:
            return
        raise KafkaException(KafkaError(KafkaError._FAIL, "the answer is lost", retriable=False))

    monkeypatch.setattr(lanes, "commit", losing)
    if large:
        only_large(monkeypatch)
    if not marked:
        monkeypatch.setattr(lanes, "check_own_marker", lambda *_: None)
    stage.go(70)
    assert not token.exists()
    assert stage.once() == marked
    assert {row["n"] for row in stage.rows()} == set(range(70))


def test_both_ways_write_the_same_messages(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    options = "lanes: 4, headers: {h: {column: n}, w: x}"
    small, large = spy(monkeypatch, "publish_small"), spy(monkeypatch, "publish")
    stage.go(60, options)
    assert (len(small), len(large)) == (2, 0)
    with monkeypatch.context() as patched:
        only_large(patched)
        stage.count = 0
        stage.go(60, options)
    found = [
        (message.key(), message.value(), message.partition(), str(message.headers())) for message in stage.kafka.messages(stage.target)
    ]
    assert (len(small), len(large)) == (2, 2)
    assert len(found) == 120 and len(set(found)) == 60
    for key in {key for key, *_ in found}:  # each way keeps the order of a key
        order = [int(dict(message.headers())["h"]) for message in stage.kafka.messages(stage.target) if message.key() == key]
        assert order == 2 * sorted(set(order)) and len(order) == 24
