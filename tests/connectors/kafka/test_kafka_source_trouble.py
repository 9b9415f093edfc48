"""What happens to topics while a source reads them, and clocks that go backwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.servers.kafka import Cluster

from millstream.engine.engine import SparkEngine
from millstream.errors import RunError
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = """
    sources:
      m: {{type: kafka, bootstrap_servers: "{address}", topic: {topic}, format: string}}
    sinks:
      out: {{type: file, from: m, path: out, format: csv}}
    settings: {{restart: {{limit: 1, backoff: 100ms}}}}
"""


def arrived(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("out/*.csv") for line in file.read_text().splitlines()[1:])


@pytest.mark.parametrize("made_again", [False, True])
def test_a_topic_that_is_deleted_while_it_is_read(
    made_again: bool, kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology], tmp_path: Path
) -> None:
    topic, stop, failures = kafka.topic(), threading.Event(), list[RunError]()
    kafka.send(topic, ["a", "b"])

    def go() -> None:
        try:
            SparkEngine(spark).run(pipeline(TEXT.format(address=kafka.address, topic=topic)), RunOptions(stop=stop))
        except RunError as error:
            failures.append(error)

    running = threading.Thread(target=go)
    running.start()
    try:
        _wait(lambda: len(arrived(tmp_path)) == 2)
        kafka.delete(topic)
        if made_again:
            _wait(lambda: _made(kafka, topic))
            kafka.send(topic, ["c"])
        _wait(lambda: bool(failures))
    finally:
        stop.set()
        running.join(60)
    (finding,) = failures[0].diagnostics
    assert finding.code in {"MS091", "MS093"}
    assert arrived(tmp_path) == ["a", "b"]


def test_messages_whose_clock_goes_backwards_are_all_read(kafka: Cluster, read: Callable[..., list[dict[str, object]]]) -> None:
    topic = kafka.topic()
    for value, at in (("a", 3_000), ("b", 5_000), ("c", 1_000), ("d", 4_000)):
        kafka.send(topic, [value], timestamp=1_700_000_000_000 + at)
    options = f"topic: {topic}, format: string, starting_offsets: '2023-11-14T22:13:24Z'"
    assert [row["value"] for row in read(options)] == ["b", "c", "d"]


def _made(kafka: Cluster, topic: str) -> bool:
    try:
        kafka.topic(name=topic)
    except Exception:  # noqa: BLE001 — the old one is still being removed
        return False
    return True


def _wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
