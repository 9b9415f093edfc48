"""The broker, and the jars that Spark needs to talk to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.kafka import Cluster

from millstream.jvm.jars import jar_paths
from millstream.observe.report import Report
from millstream.plan.topology import Topology

Rows = list[dict[str, Any]]
PIPELINE = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      messages: {{type: kafka, mode: {mode}, {options}}}
    sinks:
      out: {{type: file, from: messages, path: out, format: json}}
      letters: {{type: file, path: letters, format: json}}
    settings: {{trigger: {{type: available_now}}{more}}}
"""


@pytest.fixture(autouse=True)
def _connector(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames and any(located.path is None for located in jar_paths(["kafka"])):
        pytest.skip("Spark's Kafka connector is not here and cannot be fetched")


@pytest.fixture
def read(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Any) -> Callable[..., Rows]:
    """Run a pipeline over a topic, and give all rows that its sink holds by then."""

    def go(
        options: str,
        isolate: bool = False,
        endless: bool = False,
        until: str = "latest",
        name: str = "p",
        more: str = "",
        reports: list[Report] | None = None,
        **settings: Any,
    ) -> Rows:
        mode = "{type: continuous}" if endless else f"{{type: bounded, until: {until}}}"
        dead = ", on_error: {dead_letter: letters}" if isolate else ""
        text = PIPELINE.format(address=kafka.address, mode=mode, options=options + dead, more=more)
        text = text if dead else text.replace("      letters: {type: file, path: letters, format: json}\n", "")
        report = run(pipeline(text, name), **settings)
        if reports is not None:
            reports.append(report)
        files = sorted((tmp_path / "out").glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    return go
