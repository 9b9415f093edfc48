"""A real broker for a whole test run, and a client that is not Spark's to fill topics and to look at groups."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.dev.kafka import Broker, start_broker
from millstream.errors import SetupError

_SECONDS = 20


@dataclass
class Cluster:
    """The broker, seen from outside."""

    broker: Broker

    @property
    def address(self) -> str:
        return self.broker.address

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    @cached_property
    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.address, "linger.ms": 0, "log_level": 0})

    def topic(self, partitions: int = 1, name: str = "", **config: str) -> str:
        """A new topic, under a name that no other test has."""
        name = name or f"t{uuid.uuid4().hex[:8]}"
        for future in self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            future.result(_SECONDS)
        self._until_known(name, partitions)
        return name

    def _until_known(self, topic: str, partitions: int) -> None:
        """The broker that has made a topic does not know it at once."""
        deadline = time.monotonic() + _SECONDS
        while len(self.admin.list_topics(topic, _SECONDS).topics[topic].partitions) < partitions:
            assert time.monotonic() < deadline, f"{topic} is not there"
            time.sleep(0.02)

    def delete(self, topic: str) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(_SECONDS)

    def send(self, topic: str, values: Iterable[Any], partition: int = 0, **options: Any) -> None:
        """Texts, bytes and None as they are, everything else as JSON."""
        for value in values:
            data = value if isinstance(value, str | bytes | None) else json.dumps(value)
            self.producer.produce(topic, data, partition=partition, **options)
        assert self.producer.flush(_SECONDS) == 0

    def partitions(self, topic: str, count: int) -> None:
        """Let a topic grow."""
        from confluent_kafka.admin import NewPartitions

        for future in self.admin.create_partitions([NewPartitions(topic, count)]).values():
            future.result(_SECONDS)
        self.__dict__.pop("producer", None)  # it remembers how many there were

    def forget(self, topic: str, before: int, partition: int = 0) -> None:
        """Remove messages, as retention does."""
        for future in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(_SECONDS)

    def group(self, name: str) -> dict[tuple[str, int], int]:
        """What a consumer group has committed."""
        (future,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
        return {(place.topic, place.partition): place.offset for place in future.result(_SECONDS).topic_partitions}

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """A producer within a transaction that is aborted at the end, unless it was committed."""
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": uuid.uuid4().hex, "log_level": 0})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        yield producer
        producer.abort_transaction(_SECONDS)

    def messages(self, topic: str) -> list[Any]:
        """All committed messages that are there now, partition by partition."""
        options = {"bootstrap.servers": self.address, "group.id": uuid.uuid4().hex, "isolation.level": "read_committed", "log_level": 0}
        consumer = Consumer({**options, "auto.offset.reset": "earliest", "enable.partition.eof": True})
        places = [TopicPartition(topic, p, 0) for p in consumer.list_topics(topic, _SECONDS).topics[topic].partitions]
        found, open_ = list[Any](), len(places)
        try:
            consumer.assign(places)
            while open_:
                message = consumer.poll(_SECONDS)
                assert message is not None, f"{topic} does not come to its end"
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ -= 1
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def read(self, topic: str, count: int) -> list[bytes]:
        """The first messages of a topic."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        try:
            return [message.value() for message in consumer.consume(count, _SECONDS)]
        finally:
            consumer.close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[Cluster]:
    """One broker for the whole run."""
    try:
        broker = start_broker(progress=print)
    except SetupError as error:
        if error.diagnostics[0].code != "MS042":
            raise
        pytest.skip(f"the broker's jars are not here and cannot be fetched: {error.diagnostics[0].message}")
    with broker:
        yield Cluster(broker)
