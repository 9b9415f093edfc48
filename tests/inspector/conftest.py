"""A run without Spark, whose recorder is fed by the test."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import LocalStorage
from millstream.inspector.attendance import attended
from millstream.inspector.attended import AttendedRun
from millstream.inspector.client import Client
from millstream.inspector.registration import find
from millstream.observe.gate import Gate
from millstream.observe.recorder import Recorder
from millstream.plan.cutting import cut
from millstream.plan.run_options import InspectAddress, RunOptions
from millstream.spec.loader import loads

CANARY = "s3cr3t-canary-value"
TEXT = """
name: shop
sources:
  orders:
    type: kafka
    topic: orders
    format: string
    bootstrap_servers: "h:1"
    security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: secret://env/CANARY}
transforms:
  big: {type: filter, from: orders, where: "value <> 'x'", description: "<b>big</b> ones"}
sinks:
  out: {type: blackhole, from: big}
"""


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of running pipelines, for this test alone."""
    folder = tmp_path_factory.mktemp("x")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def attend(tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[AttendedRun, str]]]:
    """Open a run; its recorder, and the link to its page."""
    monkeypatch.setenv("CANARY", CANARY)
    with ExitStack() as every:

        def go(
            text: str = TEXT, host: str = "127.0.0.1", tell: Callable[[str], None] = str, stack: ExitStack = every
        ) -> tuple[AttendedRun, str]:
            topology = loads(text, environ=os.environ).require()
            storage = LocalStorage(tmp_path / f"checkpoint-{topology.name}")
            run = AttendedRun(topology, Checkpoint(storage, topology.name), Recorder(topology.name), Gate(), threading.Event())
            stack.enter_context(attended(run, RunOptions(inspect=InspectAddress(host), tell=tell), os.environ))
            run.recorder.state("running")
            for plan in cut(topology):
                run.recorder.query_state(plan.name, "running")
            return run, Client(find(topology.name, os.environ)).order("page")["url"]

        yield go
