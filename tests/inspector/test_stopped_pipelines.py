"""The page of a pipeline that does not run shows its last run, and takes no orders."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from millstream.errors import Diagnostic, RunError
from millstream.inspector.attendance import shown
from millstream.inspector.attended import AttendedRun
from millstream.inspector.past import last_run
from millstream.observe.facts import EpochFacts
from millstream.plan.run_options import InspectAddress

Attend = Callable[..., tuple[AttendedRun, str]]


def ask(link: str, path: str, method: str = "GET") -> Any:
    connection = http.client.HTTPConnection(urlsplit(link).netloc, timeout=10)
    connection.request(method, path, '{"node": "big", "folder": "x"}', {"Authorization": f"Bearer {link.partition('#')[2]}"})
    return json.loads(connection.getresponse().read())


def end(attend: Attend, *, failure: Diagnostic | None = None, state: str = "stopped") -> AttendedRun:
    """A run that has had one epoch, and has ended."""
    with suppress(RunError), ExitStack() as stack:
        run, _ = attend(stack=stack)
        run.recorder.read("orders", {"orders": 100})
        run.recorder.epoch(EpochFacts("orders", 7, 0.5, {"out": 70}, {"big": 3}, committed=("out",)))
        if state:
            run.recorder.state(state)  # type: ignore[arg-type]
        if failure is not None:
            raise RunError(failure)
    return run


def test_it_shows_how_the_last_run_has_ended(attend: Attend) -> None:
    run = end(attend, failure=Diagnostic("MS066", "it broke", node="big"), state="failed")
    with shown(last_run(run.topology, run.checkpoint), InspectAddress(), os.environ) as link:
        status = ask(link, "/api/status")
        assert (status["state"], status["health"]["status"]) == ("failed", "failed")
        assert any("it broke" in reason for reason in status["health"]["reasons"])
        assert status["nodes"]["out"]["rows_in"] == 70
        assert status["nodes"]["big"]["rejected"] == 3
        assert status["queries"]["orders"]["last_epoch"] == 7
        about = ask(link, "/api/run")
        assert (about["run"], about["process"]) == (run.run, os.getpid())
        assert run.began - 1 < about["ended"] < run.began + 60
        assert [event["event"] for event in ask(link, "/api/history")["events"]][-1] == "failed"


def test_the_last_of_several_runs_counts(attend: Attend) -> None:
    end(attend, state="failed")
    run = end(attend, state="done")
    found = last_run(run.topology, run.checkpoint)
    assert (found.run, found.recorder.snapshot().state) == (run.run, "done")


def test_a_run_that_has_died_is_said_to_have_died(attend: Attend) -> None:
    run = end(attend, state="")
    snapshot = last_run(run.topology, run.checkpoint).recorder.snapshot()
    assert snapshot.state == "failed"
    assert "the process has died" in snapshot.notes[-1]
    assert snapshot.queries["orders"].state == "failed"


@pytest.mark.parametrize("order", ["orders/stop", "orders/pause", "orders/resume", "orders/savepoint", "watch"])
def test_it_takes_no_orders(attend: Attend, order: str) -> None:
    run = end(attend)
    with shown(last_run(run.topology, run.checkpoint), InspectAddress(), os.environ) as link:
        (refused,) = ask(link, f"/api/{order}", "POST")["errors"]
        assert refused["code"] == "MS187"
        assert "does not run" in refused["message"]
