"""A worker's producers: opened once, and kept from epoch to epoch as long as the lane stays with the worker.

Opening takes tens of milliseconds, and a look at the marker takes a consumer. Neither is needed again by the one who committed the lane's
last epoch: had anybody opened the lane since, this producer's next commit would fail. Everything else (another worker was last, an
attempt failed) opens the lane anew. This module is sent to the workers whole, with every task, so what is to last is kept beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pyarrow as pa

_HOME = "_millstream_lanes"
_DRAIN_SECONDS = 0.005


class Writer:
    """The producer of one lane."""

    def __init__(self, client: Mapping[str, Any], group: str, lane: int) -> None:
        from confluent_kafka import Producer

        self.client, self.group, self.lane = client, group, lane
        self.failed: list[str] = []
        self.epoch = -1
        """The last one that it has committed."""
        self.metadata: Any = None
        """Who the markers belong to, as the client puts it."""
        own = {"transactional.id": f"{group}.{lane}", "on_delivery": self._told}
        self.producer = Producer({**client, **own})

    @contextmanager
    def looking(self) -> Iterator[Any]:
        """A consumer that sees the marker."""
        from confluent_kafka import Consumer

        consumer = Consumer({**_reading(self.client), "group.id": self.group, "enable.auto.commit": False})
        try:
            self.metadata = consumer.consumer_group_metadata()
            yield consumer
        finally:
            consumer.close()

    def send(self, topic: str, batch: pa.RecordBatch) -> None:
        """Hand messages to the client, which sends them in a thread of its own."""
        produce, drain = self.producer.produce, self.producer.poll
        keys, values, headers = batch.column("key").to_pylist(), batch.column("value").to_pylist(), _headers(batch)
        for place, value in enumerate(values):
            extra = {"headers": headers[place]} if headers else {}
            while True:
                try:
                    produce(topic, value, keys[place], **extra)
                    break
                except BufferError:  # the queue is full
                    drain(_DRAIN_SECONDS)
        drain(0)

    def _told(self, error: Any, _: Any) -> None:
        if error:
            self.failed.append(error.name())


def keep(writer: Writer, epoch: int) -> None:
    """For the lane's next epoch."""
    writer.epoch = epoch
    _kept()[writer.group, writer.lane] = writer


def reuse(client: Mapping[str, Any], group: str, lane: int, expected: Mapping[int, int]) -> Writer | None:
    """The writer that has committed the lane's last epoch. Those that others have taken a lane over from are let go."""
    writers = _kept()
    for (owner, number), writer in list(writers.items()):
        if owner == group and (expected.get(number) != writer.epoch or writer.client != client):
            del writers[owner, number]
    return writers.pop((group, lane), None)


def patiently(seconds: float, step: Callable[[], Any]) -> Any:
    """What failed for now is tried again: the client remembers how far it came."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + seconds
    while True:
        try:
            return step()
        except KafkaException as error:
            passes = error.args[0].retriable() or "COORD" in error.args[0].name() or error.args[0].name() == "UNSTABLE_OFFSET_COMMIT"
            if not passes or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _kept() -> dict[tuple[str, int], Writer]:
    """(group, lane) → the writer that this process has."""
    home = sys.modules.setdefault(_HOME, ModuleType(_HOME))
    found: dict[tuple[str, int], Writer] = vars(home).setdefault("writers", {})
    return found


def _headers(batch: pa.RecordBatch) -> list[Any]:
    if "headers" not in batch.schema.names:
        return []
    return [[(each["key"], each["value"]) for each in row or ()] for row in batch.column("headers").to_pylist()]


def _reading(client: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a consumer knows too."""
    return {name: value for name, value in client.items() if name.startswith(("bootstrap.", "security.", "sasl.", "ssl.", "log_level"))}
