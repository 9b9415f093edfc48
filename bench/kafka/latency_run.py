"""Messages that hold the time they were sent at go through a pipeline, ten a second; the reader says how old they are."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer

from bench.kafka.rows import new_topic
from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

WARM, COUNT, PAUSE = 50, 300, 0.1
"""The first ones are not counted: the first of all waits for the pipeline to start."""
TEXT = """
connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
sources: {{m: {{type: kafka, topic: in, format: json, schema: {{id: int64, sent: float64}}}}}}
transforms: {{some: {{type: filter, from: m, where: id >= 0}}}}
sinks: {{out: {{type: kafka, from: some, topic: out, key: [id], guarantee: {guarantee}}}}}
settings: {{checkpoint: {folder}, trigger: {trigger}}}
"""


def main(way: str) -> None:
    guarantee, trigger = ("at_least_once", "{type: real_time}") if way == "real_time" else (way, "{type: continuous}")
    with start_broker() as broker, tempfile.TemporaryDirectory() as folder:
        for topic in ("in", "out"):
            new_topic(broker.address, topic, 1)
        text = TEXT.format(address=broker.address, guarantee=guarantee, trigger=trigger, folder=folder)
        session = begin(SessionOptions(master="local[2]", profile="long", extras=("kafka",))).finish()
        engine = SparkEngine(session.spark)
        with _running(engine, text):
            ages = _ages(broker.address)
        session.close()
    print(json.dumps(ages[WARM:]))


@contextmanager
def _running(engine: SparkEngine, text: str) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=lambda: engine.run(loads(text).require(), RunOptions(stop=stop)))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(90)


def _ages(address: str) -> list[float]:
    """How old each message is when it arrives. The second one is sent when the first one is there."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 5})
    consumer.subscribe(["out"])
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    _send(producer, 0)
    ages = [_age(consumer)]
    sender = threading.Thread(target=_send_rest, args=(producer,))
    sender.start()
    ages += [_age(consumer) for _ in range(1, WARM + COUNT)]
    sender.join()
    consumer.close()
    return ages


def _age(consumer: Consumer) -> float:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return time.time() - float(json.loads(message.value() or b"")["sent"])
    raise RuntimeError("no more messages arrive")


def _send_rest(producer: Producer) -> None:
    for number in range(1, WARM + COUNT):
        _send(producer, number)


def _send(producer: Producer, number: int) -> None:
    producer.produce("in", json.dumps({"id": number, "sent": time.time()}))
    producer.flush()
    time.sleep(PAUSE)


if __name__ == "__main__":
    main(sys.argv[1])
