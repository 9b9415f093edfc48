"""Metrics reach a collector of OpenTelemetry; without it the run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tests.inspector.conftest import CANARY, TEXT
from tests.servers.collector import Received, collector

from millstream.errors import SetupError
from millstream.inspector.exported_metrics import METRICS
from millstream.observe.facts import EpochFacts, WatermarkFacts
from millstream.spec.loader import loads

OTLP = "\nsettings: {telemetry: {labels: {team: shop}, otlp: {endpoint: ENDPOINT, headers: {authorization: secret://env/CANARY}, EVERY}}}"


def settings(endpoint: str, every: str = "metrics_every: 100ms") -> str:
    return TEXT + OTLP.replace("ENDPOINT", f'"{endpoint}"').replace("EVERY", every)


def wait_for(true: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def has(received: Received, name: str) -> bool:
    return bool(received.messages) and any(point for point in received.metrics()[name].sum.data_points)


def test_counts_arrive_with_their_names_units_and_resource(attend: Callable[..., object]) -> None:
    with collector() as received:
        run, _ = attend(settings(received.endpoint))
        watermark = WatermarkFacts(1000, 1.0, "orders")
        run.recorder.epoch(EpochFacts("orders", 0, 0.3, {"out": 5}, {"big": 2}, (), ("out",), {}, watermark, {}))
        wait_for(lambda: has(received, "millstream.node.rows.in"))
        metrics = received.metrics()
    assert {metric.name for metric in METRICS} <= set(metrics) and "millstream.python.process.resident_memory" in metrics
    rows = metrics["millstream.node.rows.in"]
    assert rows.sum.is_monotonic and [point.as_int for point in rows.sum.data_points] == [5]
    assert {each.key: each.value.string_value for each in rows.sum.data_points[0].attributes} == {"node": "out", "kind": "sink"}
    epochs = metrics["millstream.query.epoch.duration"]
    assert epochs.unit == "s" and epochs.histogram.data_points[0].count == 1 and sum(epochs.histogram.data_points[0].bucket_counts) == 1
    about = {each.key: each.value.string_value for each in received.messages[-1].resource_metrics[0].resource.attributes}
    assert about["service.name"] == "shop" and about["team"] == "shop" and about["service.instance.id"] == run.run


def test_the_header_arrives_and_its_secret_is_nowhere_else(attend: Callable[..., object]) -> None:
    with collector() as received:
        attend(settings(received.endpoint))
        wait_for(lambda: received.messages)
    assert received.headers[0]["authorization"] == CANARY
    assert not any(CANARY.encode() in body for body in received.raw)


def test_the_last_totals_are_sent_at_the_end(attend: Callable[..., object]) -> None:
    with collector() as received, ExitStack() as stack:
        run, _ = attend(settings(received.endpoint, "metrics_every: 1h"), stack=stack)
        run.recorder.read("orders", {"orders": 7})
        stack.close()
        assert len(received.messages) == 1
        assert received.metrics()["millstream.node.rows.out"].sum.data_points[0].as_int == 7


@pytest.mark.parametrize("status", [0, 503])
def test_an_unreachable_collector_is_one_warning(attend: Callable[..., object], status: int) -> None:
    with collector() as received:
        received.status = status
    if not status:
        run, _ = attend(settings(received.endpoint))
        time.sleep(0.5)
    else:
        with collector() as received:
            received.status = status
            run, _ = attend(settings(received.endpoint))
            wait_for(lambda: len(received.headers) > 2)
    notes = [note for note in run.recorder.snapshot().notes if "metrics do not reach" in note]
    assert len(notes) == 1 and received.endpoint in notes[0] and "goes on" in notes[0]
    assert CANARY not in notes[0]


def test_without_the_package_the_extra_is_named(attend: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    with pytest.raises(SetupError) as raised:
        attend(settings("http://127.0.0.1:1"))
    assert raised.value.diagnostics[0].code == "MS045" and "millstream[otlp]" in str(raised.value.diagnostics[0].help)


@pytest.mark.parametrize(("endpoint", "says"), [("collector:4318", "begins with"), ("http://me:pw@host:4318", "no password")])
def test_a_bad_address_is_refused(endpoint: str, says: str) -> None:
    found = loads(settings(endpoint)).diagnostics
    assert any(says in each.message and each.span for each in found), found
    assert not any("pw@" in each.message for each in found)
