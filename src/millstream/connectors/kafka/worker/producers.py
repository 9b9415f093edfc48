"""Writers: opened once, and kept from epoch to epoch. The driver keeps that of small epochs; a worker keeps that of a lane while the lane
stays with the worker.

Opening takes tens of milliseconds, and reading the marker needs a consumer. The producer that committed the lane's last epoch needs
neither: if another owner had opened the lane since, its next commit would fail. In all other cases (another worker was last, an attempt
failed) the lane is opened again. This package is pickled to the workers with every task, so lasting objects are kept outside of it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import Any

import pyarrow as pa

SMALL = -1
"""The lane of small epochs: one transaction has all rows of the epoch."""
_HOME = "_millstream_lanes"
_DRAIN_SECONDS = 0.005


class Writer:
    """The transactional producer of a lane."""

    def __init__(self, client: Mapping[str, Any], group: str, lane: int) -> None:
        from confluent_kafka import Producer

        self.client, self.group, self.lane = client, group, lane
        self._errors: list[Any] = []
        """What the broker said of messages that it did not take."""
        self.is_open = False
        """Whether it owns its transactional id, and the marker allows it to write."""
        self.epoch = -1
        """The last epoch that a worker committed with it."""
        self.metadata: Any = None
        """The consumer group of the markers, as the client represents it."""
        own = {"transactional.id": transactional_id(group, lane), "on_delivery": partial(_record_error, self._errors)}
        self.producer = Producer({**client, **own}, logger=_silent_logger())

    @contextmanager
    def open_consumer(self) -> Iterator[Any]:
        """A consumer that can read the marker."""
        with open_group(self.client, self.group, self.lane) as consumer:
            self.metadata = consumer.consumer_group_metadata()
            yield consumer

    def send(self, topic: str, batch: pa.RecordBatch) -> None:
        """Pass messages to the client, which sends them in its own thread."""
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

    def require_delivery(self) -> None:
        """Raise if the broker has refused a message."""
        from confluent_kafka import KafkaException

        if self._errors:
            raise KafkaException(self._errors[-1])

    @property
    def failed(self) -> list[str]:
        """The names of the errors of messages that were not taken."""
        return [error.name() for error in self._errors]

    def abort(self, seconds: float) -> None:
        """End a transaction that cannot be committed: readers of committed messages wait for open ones."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self.producer.abort_transaction(seconds)


def transactional_id(group: str, lane: int) -> str:
    return f"{group}.{'small' if lane == SMALL else lane}"


def marker_group(group: str, lane: int) -> str:
    """The consumer group of the lane's marker."""
    return transactional_id(group, SMALL) if lane == SMALL else group


def marker_partition(lane: int) -> int:
    """The partition whose offset in that group is the lane's marker."""
    return max(lane, 0)


@contextmanager
def open_group(client: Mapping[str, Any], group: str, lane: int) -> Iterator[Any]:
    """A consumer that reads the markers of the lane's group. It waits for markers that are still in a transaction."""
    from confluent_kafka import Consumer

    own = {"group.id": marker_group(group, lane), "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({**_consumer_properties(client), **own})
    try:
        yield consumer
    finally:
        consumer.close()


def keep(writer: Writer, epoch: int) -> None:
    """Keep the writer for its lane's next epoch."""
    writer.epoch = epoch
    _writers()[writer.group, writer.lane] = writer


def reuse(client: Mapping[str, Any], group: str, lane: int, expected: Mapping[int, int]) -> Writer | None:
    """The writer that committed the lane's last epoch. Writers whose lane was taken over are closed."""
    writers = _writers()
    for (owner, number), writer in list(writers.items()):
        if owner == group and (expected.get(number) != writer.epoch or writer.client != client):
            del writers[owner, number]
    return writers.pop((group, lane), None)


def retry_step(seconds: float, step: Callable[[], Any]) -> Any:
    """Retry a step on temporary failures: the client continues where it stopped."""
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


def _writers() -> dict[tuple[str, int], Writer]:
    """(group, lane) → the writer of this process."""
    home = sys.modules.setdefault(_HOME, ModuleType(_HOME))
    found: dict[tuple[str, int], Writer] = vars(home).setdefault("writers", {})
    return found


def _record_error(errors: list[Any], error: Any, _: Any) -> None:
    """Called by the client for each message. It must not refer to the writer, which would not end then."""
    if error:
        errors.append(error)


def _silent_logger() -> logging.Logger:
    """For a client that writes a fatal error to the terminal, whatever its log level: it is returned as well."""
    logger = logging.Logger("millstream.kafka")
    logger.addHandler(logging.NullHandler())
    return logger


def _headers(batch: pa.RecordBatch) -> list[Any]:
    if "headers" not in batch.schema.names:
        return []
    return [[(each["key"], each["value"]) for each in row or ()] for row in batch.column("headers").to_pylist()]


def _consumer_properties(client: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a consumer supports too."""
    return {name: value for name, value in client.items() if name.startswith(("bootstrap.", "security.", "sasl.", "ssl.", "log_level"))}
