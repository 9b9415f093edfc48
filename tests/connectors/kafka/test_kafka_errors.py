"""Everything that can be wrong with a cluster is one clear sentence, in a bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.servers.kafka import Cluster

from millstream.errors import RunError, TemporaryError
from millstream.observe.report import Report

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, object]]]


def failure(read: Read, options: str, **settings: object) -> RunError:
    with pytest.raises(RunError) as caught:
        read(options, **settings)
    assert len(caught.value.diagnostics) == 1
    return caught.value


def test_a_broker_that_is_not_there(kafka: Cluster, read: Read) -> None:
    started = time.monotonic()
    error = failure(read, "topic: t, format: string, bootstrap_servers: '127.0.0.1:1, nowhere.invalid:9092'")
    (finding,) = error.diagnostics
    assert (finding.code, finding.span.line) == ("MS090", 4)
    assert "127.0.0.1:1: connection refused" in finding.detail
    assert "nowhere.invalid:9092: " in finding.detail
    assert not isinstance(error, TemporaryError)
    assert time.monotonic() - started < 60


def test_a_topic_that_is_not_there(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    (finding,) = failure(read, f"topic: {topic}x, format: string").diagnostics
    assert finding.code == "MS091"
    assert finding.help == f"did you mean `{topic}`?"


def test_a_login_where_none_is_offered(kafka: Cluster, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    security = "{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: a, password: secret://env/KAFKA_PASSWORD}"
    started = time.monotonic()
    (finding,) = failure(read, f"topic: t, format: string, security: {security}").diagnostics
    assert finding.code in {"MS090", "MS092"}
    assert "hunter2" not in finding.render()
    assert time.monotonic() - started < 90


def test_a_topic_that_was_made_anew(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a"])
    endless = {"endless": True}
    read(f"topic: {topic}, format: string", **endless)
    kafka.delete(topic)
    _recreate(kafka, topic)
    (finding,) = failure(read, f"topic: {topic}, format: string", **endless).diagnostics
    assert finding.code == "MS093"
    assert "created again" in finding.message


def test_messages_that_are_gone_stop_the_run_unless_told_otherwise(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a"])
    assert [row["value"] for row in read(f"topic: {topic}, format: string", endless=True)] == ["a"]
    kafka.send(topic, ["b", "c", "d"])
    kafka.forget(topic, 3)
    (finding,) = failure(read, f"topic: {topic}, format: string", endless=True).diagnostics
    assert finding.code == "MS093"
    reports: list[Report] = []
    rows = read(f"topic: {topic}, format: string, on_data_loss: continue", endless=True, reports=reports)
    assert [row["value"] for row in rows] == ["a", "d"]
    assert reports[0].nodes["messages"].lost == 2


def test_another_cluster_is_refused(kafka: Cluster, read: Read) -> None:
    from millstream.dev.kafka import start_broker

    topic = kafka.topic()
    kafka.send(topic, ["a"])
    read(f"topic: {topic}, format: string", endless=True)
    with start_broker() as other:
        Cluster(other).topic(name=topic)
        (finding,) = failure(read, f"topic: {topic}, format: string, bootstrap_servers: '{other.address}'", endless=True).diagnostics
    assert finding.code == "MS094"


def _recreate(kafka: Cluster, topic: str) -> None:
    for _ in range(50):
        try:
            kafka.topic(name=topic)
            return
        except Exception:  # noqa: BLE001 — the old one is still going
            time.sleep(0.1)
    pytest.fail("the topic could not be made again")
