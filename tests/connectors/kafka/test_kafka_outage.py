"""A broker that is killed and comes back: the run goes on, and every message arrives once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.servers.kafka import Cluster

from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.observe.facts import Snapshot
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.server]
TEXT = """
    sources:
      m:
        type: kafka
        bootstrap_servers: "{address}"
        topic: t
        format: string
        consumer: {{default.api.timeout.ms: 3000, request.timeout.ms: 2000}}
    sinks:
      out: {{type: file, from: m, path: out, format: csv}}
    settings: {{restart: {{limit: 20, backoff: 500ms, max_backoff: 1s}}}}
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with start_broker() as broker:
        yield Cluster(broker)


def arrived(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("out/*.csv") for line in file.read_text().splitlines()[1:])


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_every_message_arrives_once(cluster: Cluster, spark: SparkSession, pipeline: Callable[..., Topology], tmp_path: Path) -> None:
    cluster.topic(2, name="t")
    topology, stop, reports = pipeline(TEXT.format(address=cluster.address)), threading.Event(), list[Report]()
    snapshots: list[Snapshot] = []
    options = RunOptions(stop=stop, watch=snapshots.append)
    running = threading.Thread(target=lambda: reports.append(SparkEngine(spark).run(topology, options)))
    running.start()
    try:
        cluster.send("t", [f"before-{n}" for n in range(5)])
        wait_for(lambda: len(arrived(tmp_path)) == 5)
        cluster.broker.kill()
        time.sleep(3)  # long enough for the client to notice
        cluster.broker.start()
        cluster.send("t", [f"after-{n}" for n in range(5)], partition=1)
        wait_for(lambda: len(arrived(tmp_path)) >= 10)
    finally:
        stop.set()
        running.join(60)
    assert arrived(tmp_path) == sorted([f"{when}-{n}" for when in ("before", "after") for n in range(5)])
    assert [report.state for report in reports] == ["stopped"]
    wait_for(lambda: cluster.group("millstream.p.m") == {("t", 0): 5, ("t", 1): 5})
