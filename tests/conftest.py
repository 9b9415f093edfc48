"""One warm session for the whole run, and small makers of pipelines."""

from __future__ import annotations

import gc
import os
import signal
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis  # noqa: F401 — imported late, while a failure is told, it breaks Python 3.11: ast.parse loses count of its depth
import pytest

from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.jvm.session import Session

SERVERS = "tests.servers"
SESSION: pytest.StashKey[Session] = pytest.StashKey()
pytest_plugins = [
    "tests.lanes",
    "tests.warm",
    *(f"{SERVERS}.{file.stem}" for file in sorted(Path(__file__).with_name("servers").glob("*.py"))),
]
"""A module in `servers` brings the fixture of its server."""


def pytest_configure() -> None:
    """A shell that runs the suite in the background has it ignore Ctrl-C, and with it every process that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Whatever asks for a server is marked as such."""
    for item in items:
        fixtures = [fixture for named in item._fixtureinfo.name2fixturedefs.values() for fixture in named]
        if any(fixture.func.__module__.startswith(f"{SERVERS}.") for fixture in fixtures):
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> SparkSession:
    from millstream.errors import SetupError
    from millstream.jvm.jars import fetch
    from millstream.jvm.java import find_java
    from millstream.testing.kit import open_session

    with suppress(SetupError):  # without a network, tests that need the jars are left out
        fetch(["kafka"], find_java(os.environ), print)
    opened = open_session()
    request.config.stash[SESSION] = opened
    gc.freeze()  # every run ends with a look for garbage: not among all that pytest has collected
    return opened.spark


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """When the shared JVM has died, every later test would fail: stop, and say why it died."""
    from millstream.jvm.death import death_of

    opened = item.config.stash.get(SESSION, None)
    if call.excinfo is not None and opened is not None and (death := death_of(opened.jvm, call.excinfo.value)):
        item.session.shouldstop = f"in {item.nodeid} {death}"


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Topology]:
    """A pipeline from text, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def load(text: str, name: str = "p") -> Topology:
        from millstream.spec.files import load_pipeline

        path = tmp_path / f"{name}.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_pipeline(path)

    return load


@pytest.fixture
def run(spark: SparkSession) -> Callable[..., Report]:
    """Run a plan on the warm session."""

    def go(topology: Topology, **options: object) -> Report:
        from millstream.engine.engine import SparkEngine
        from millstream.plan.run_options import RunOptions

        return SparkEngine(spark).run(topology, RunOptions(**options))

    return go
