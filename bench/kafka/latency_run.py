"""Runs pipelines from Kafka to Kafka in turns, in one warm session, and prints the ages of their messages: `latency_run [CASE …]`.

A case is `RATE/PARTITIONS/COUNT`: messages per second, partitions of both topics, messages of each turn. Without one, all are taken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figures import module
from bench.kafka.rows import new_topic
from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

TURNS = 5
CASES = ("10/1/400", "10/8/400", "1000/1/4000", "1000/8/4000", "1/1/30")
REAL_TIME = ("10/1/400",)
"""A partition needs a task slot of its own there."""
_WARM_SECONDS = 5
TEXT = """
connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
sources: {{m: {{type: kafka, topic: {source}, format: json, schema: {{id: int64, sent: float64}}}}}}
transforms: {{some: {{type: filter, from: m, where: id >= 0}}}}
sinks: {{out: {{type: kafka, from: some, topic: {target}, key: [id], guarantee: {guarantee}}}}}
settings: {{checkpoint: {folder}, trigger: {trigger}}}
"""


def main(cases: tuple[str, ...]) -> None:
    with start_broker() as broker, tempfile.TemporaryDirectory() as folder:
        session = begin(SessionOptions(master="local[2]", profile="long", extras=("kafka",))).finish()
        runs = LatencyRuns(SparkEngine(session.spark), broker.address, folder)
        for way in ("exactly_once", "at_least_once"):
            runs.run(way, 20, 1, 400)  # compiled, and not counted
        for case in cases:
            rate, partitions, count = map(int, case.split("/"))
            ways = ("exactly_once", "at_least_once", *(["real_time"] if case in REAL_TIME else []))
            for _ in range(TURNS):
                for way in ways:
                    ages = runs.run(way, rate, partitions, count)
                    print(json.dumps({"case": case, "way": way, "load": os.getloadavg()[0], "ages": ages}), flush=True)
        session.close()


class LatencyRuns:
    """One pipeline after the other, each with topics of its own."""

    def __init__(self, engine: SparkEngine, address: str, folder: str) -> None:
        self._engine, self._address, self._folder, self._count = engine, address, folder, 0

    def run(self, way: str, rate: int, partitions: int, count: int) -> list[float]:
        self._count += 1
        source, target = f"in{self._count}", f"out{self._count}"
        for topic in (source, target):
            new_topic(self._address, topic, partitions)
        guarantee, trigger = ("at_least_once", "{type: real_time}") if way == "real_time" else (way, "{type: continuous}")
        names = {"address": self._address, "source": source, "target": target, "folder": f"{self._folder}/{self._count}"}
        with self._running(TEXT.format(guarantee=guarantee, trigger=trigger, **names)):
            words = (self._address, source, target, str(rate), str(count), str(max(3, rate * _WARM_SECONDS)))
            done = subprocess.run(module("kafka.latency_load", *words), stdout=subprocess.PIPE, text=True, check=True)
        ages: list[float] = json.loads(done.stdout)
        return ages

    @contextmanager
    def _running(self, text: str) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=lambda: self._engine.run(loads(text).require(), RunOptions(stop=stop)))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(90)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or CASES)
