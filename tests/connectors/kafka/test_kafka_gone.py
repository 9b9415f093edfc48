"""Brokers that die during a run are named within half a minute, and a stop does not wait for them for minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.servers.kafka import Cluster

from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.errors import MillstreamError
from millstream.observe.recorder import Recorder
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.server]
TEXT = """
    sources:
      orders: {{type: kafka, topic: {topic}, format: json, schema: {{id: int64}}, bootstrap_servers: "{address}"}}
    transforms:
      some: {{type: filter, from: orders, where: id >= 0}}
    sinks:
      out: {{type: file, from: some, path: out, format: json}}
    settings: {{restart: {{limit: 5, backoff: 1s}}}}
"""


def test_brokers_that_die_are_named(spark: SparkSession, pipeline: Callable[..., Topology], monkeypatch: pytest.MonkeyPatch) -> None:
    told, stop = list[str](), threading.Event()
    monkeypatch.setattr(Recorder, "_note", lambda recorder, text: told.append(str(text)))
    with start_broker() as broker:
        topic = Cluster(broker).topic(1)
        Cluster(broker).send(topic, [{"id": 1}])
        topology = pipeline(TEXT.format(topic=topic, address=broker.address))

        def go() -> None:
            with suppress(MillstreamError):
                SparkEngine(spark).run(topology, RunOptions(stop=stop))

        thread = threading.Thread(target=go)
        thread.start()
        time.sleep(4)
        broker.kill()
        killed = time.monotonic()
        while not any("does not answer" in each for each in told) and time.monotonic() < killed + 60:
            time.sleep(0.2)
        waited = time.monotonic() - killed
        stop.set()
        thread.join(60)
        ended = time.monotonic() - killed - waited
    assert waited < 30, told
    assert any(f"Kafka at `{broker.address}` does not answer, so `orders` cannot be read" in each for each in told)
    assert ended < 20
