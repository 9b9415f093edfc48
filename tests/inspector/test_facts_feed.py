"""Events of a run as server-sent events: the state first, then what happens, then the end. A client that never reads is dropped."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

from millstream.errors import Diagnostic, RunError
from millstream.inspector import feed
from millstream.inspector.attended import AttendedRun
from millstream.inspector.client import Client
from millstream.inspector.registration import find
from millstream.observe.events import Noted
from millstream.observe.facts import EpochFacts

Attend = Callable[..., tuple[AttendedRun, str]]


def test_a_reader_gets_the_state_then_events_then_the_end(attend: Attend) -> None:
    run, _ = attend()
    told = Client(find("shop", os.environ)).events()
    assert next(told)[0] == "status"
    run.recorder.epoch(EpochFacts("orders", 4, 0.1, {"out": 7}, {}, committed=("out",)))
    name, found = next(told)
    assert (name, found["event"], found["epoch"], found["rows_out"]) == ("fact", "epoch_finished", 4, {"out": 7})
    name, found = next(told)
    assert (name, found["nodes"]["out"]["rows_in"]) == ("status", 7)
    run.recorder.state("done")
    assert [name for name, _ in told][-1] == "end"


def test_fifty_readers_and_one_that_never_reads(attend: Attend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_PATIENCE", 1.0)
    run, link = attend()
    stalled = socket.create_connection((urlsplit(link).hostname, urlsplit(link).port))
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.sendall(f"GET /facts HTTP/1.1\r\nHost: {urlsplit(link).netloc}\r\n\r\n".encode())
    own = run.recorder.events.readers
    told = [Client(find("shop", os.environ)).events() for _ in range(50)]
    for each in told:
        next(each)
    deadline = time.monotonic() + 30
    text, published = "x" * 10_000, 0
    while run.recorder.events.readers > own + 49 and time.monotonic() < deadline:
        began = time.perf_counter()
        run.recorder.publish(Noted(message=text))
        assert time.perf_counter() - began < 0.5  # nobody waits for it
        published += 1
        for each in told[:1]:
            next(each)
        time.sleep(0.001)
    assert run.recorder.events.readers <= own + 50, "the client that never reads is still connected"
    for each in told:
        each.close()
    stalled.close()


def test_closed_connections_leave_no_reader(attend: Attend) -> None:
    run, _ = attend()
    before = run.recorder.events.readers
    for _ in range(20):
        told = Client(find("shop", os.environ)).events()
        next(told)
        told.close()
    deadline = time.monotonic() + 10
    while run.recorder.events.readers > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run.recorder.events.readers == before


def test_a_reader_learns_why_a_run_has_failed(attend: Attend) -> None:
    """Between the state and the failure Spark is closed, which takes a while."""
    with ExitStack() as stack:
        run, _ = attend(stack=stack)
        told = Client(find("shop", os.environ)).events()
        assert next(told)[0] == "status"

        def fail() -> None:
            run.recorder.state("failed")
            time.sleep(0.6)
            with suppress(RunError):
                stack.__exit__(RunError, RunError(Diagnostic("MS066", "it broke", node="big")), None)

        failing = threading.Thread(target=fail)
        failing.start()
        kinds = [(name, found.get("event"), found.get("node")) for name, found in told]
        failing.join()
    assert ("fact", "failed", "big") in kinds
    assert kinds[-1][0] == "end"
