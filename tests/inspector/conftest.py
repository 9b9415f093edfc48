"""A run without Spark, whose recorder is fed by the test; and a browser that visits its page."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.inspector.pages import CHROMIUM, FLAGS, PICTURES, REFUSALS, Open

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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with driver.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open a link. When the test ends there is a picture of each page, and none has had an error."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    opened: list[Any] = []
    errors: list[str] = []

    def go(link: str, width: int = 1280, scheme: str = "light") -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_default_timeout(10_000)
        page.goto(link)
        page.wait_for_selector("#health:not(:empty)")
        opened.append(page)
        return page

    yield go
    for number, page in enumerate(opened):
        page.screenshot(path=PICTURES / f"{re.sub(r'[^a-z0-9]+', '-', request.node.name)}{number or ''}.png", full_page=True)
        page.close()
    assert errors == []


def is_error(message: Any) -> bool:
    return message.type == "error" and not any(refusal in message.text for refusal in REFUSALS)
