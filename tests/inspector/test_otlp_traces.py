"""Traces reach a collector with their secrets starred; without it the run goes on, with one warning."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from tests.inspector.conftest import CANARY, TEXT
from tests.servers.collector import Received, collector

from millstream.inspector.attended import AttendedRun
from millstream.observe.events import EpochFinished, EpochPlanned, Restarting

Attend = Callable[..., tuple[AttendedRun, str]]
RECORD = f"orders\t2000000000\t00-{1:032x}-{1:016x}-01\t\t{{"


def settings(endpoint: str, trace: str = "always") -> str:
    options = "    format: string\n"
    text = TEXT.replace(options, f"{options}    telemetry: {{trace: {trace}}}\n") if trace else TEXT
    return f'{text}\nsettings: {{telemetry: {{otlp: {{endpoint: "{endpoint}"}}}}}}'


def run_an_epoch(run: AttendedRun, payload: str = "", number: int = 0) -> None:
    run.recorder.publish(EpochPlanned(query="orders", epoch=number, planned_at=1.0))
    run.recorder.traced.put("orders", number, f"{RECORD}{payload}")
    run.recorder.publish(EpochFinished(query="orders", epoch=number, seconds=0.1, rows_out={}))


@pytest.fixture
def received(attend: Attend) -> Callable[..., Received]:
    """What arrives from a run that does something."""

    def go(work: Callable[[AttendedRun], Any], **options: str) -> Received:
        with collector() as found, ExitStack() as stack:
            run, _ = attend(settings(found.endpoint, **options), stack=stack)
            work(run)
            stack.close()
        return found

    return go


def test_spans_are_sent_at_the_end_at_the_latest(received: Callable[..., Received]) -> None:
    assert sorted(span.name for span in received(run_an_epoch).spans()) == ["big", "epoch", "orders", "orders"]


def test_no_secret_is_in_a_span(received: Callable[..., Received]) -> None:
    found = received(lambda run: run_an_epoch(run, f'"password": "{CANARY}"'))
    assert "***" in str(found.spans())
    assert not any(CANARY.encode() in body for body in found.raw)


def test_without_a_traced_source_nothing_is_sent(received: Callable[..., Received]) -> None:
    assert received(run_an_epoch, trace="").spans() == []


def test_an_epoch_that_fails_is_an_error(received: Callable[..., Received]) -> None:
    def fail(run: AttendedRun) -> None:
        run.recorder.publish(EpochPlanned(query="orders", epoch=0, planned_at=1.0))
        run.recorder.publish(Restarting(query="orders", message=f"refused with {CANARY}", attempt=1, pause=0.1, code="MS061"))

    (span,) = received(fail).spans()
    assert (span.name, span.status.message) == ("epoch", "MS061: refused with ***")


def test_an_unreachable_collector_is_one_warning(attend: Attend) -> None:
    with collector() as gone:
        pass
    with ExitStack() as stack:
        run, _ = attend(settings(gone.endpoint), stack=stack)
        for number in range(3):
            run_an_epoch(run, number=number)
            time.sleep(1.1)
    notes = [str(note) for note in run.recorder.snapshot().notes if "traces" in str(note)]
    assert len(notes) == 1
    assert f"traces do not reach {gone.endpoint}/v1/traces" in notes[0]


def test_what_cannot_be_read_does_not_end_the_traces(received: Callable[..., Received]) -> None:
    def go(run: AttendedRun) -> None:
        run.recorder.traced.put("orders", 7, "no line of a tap")
        time.sleep(1.3)
        run_an_epoch(run, number=8)
        time.sleep(1.3)
        assert [str(note) for note in run.recorder.snapshot().notes if "traces are missing" in str(note)]

    assert "orders" in [span.name for span in received(go).spans()]
