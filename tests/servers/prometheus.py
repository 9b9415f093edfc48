"""A real Prometheus as the example configures it, which scrapes one address every half second."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tools.prometheus import find

from millstream.dev.ports import free_port

RULES = Path(__file__).parents[2] / "ops" / "prometheus" / "alerts.yaml"
EXAMPLE = RULES.parents[2] / "examples" / "14-alerts"
_SECONDS = 20


@dataclass(frozen=True)
class Prometheus:
    """The server, by its HTTP interface."""

    address: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def ask(self, path: str, **parameters: str) -> Any:
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            return json.loads(answer.read())["data"]


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[str], Prometheus]]:
    """Start one that scrapes an address."""
    binary = find("prometheus")
    if binary is None:
        pytest.skip("Prometheus is not here")
    with ExitStack() as every:
        yield lambda target: every.enter_context(_running(binary, target, tmp_path / "prometheus"))


@contextmanager
def _running(binary: str, target: str, folder: Path) -> Iterator[Prometheus]:
    folder.mkdir()
    text = (EXAMPLE / "prometheus.yml").read_text()
    for shown, own in (("127.0.0.1:9464", target), ("5s", "500ms"), ("../../ops/prometheus/alerts.yaml", str(RULES))):
        assert shown in text
        text = text.replace(shown, own)
    (folder / "prometheus.yaml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([binary, *options], stdout=log, stderr=log)
    try:
        _wait(f"http://{address}/-/ready", process)
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (OSError, urllib.error.HTTPError):
            assert process.poll() is None, "Prometheus has ended"
            assert time.monotonic() < end, "Prometheus does not start"
            time.sleep(0.05)
