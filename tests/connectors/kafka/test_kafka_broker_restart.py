"""A writer that stays open survives a restart of the only broker. With the client's default it waits for ever."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.worker.lanes import LaneJob
from millstream.connectors.kafka.worker.producers import SMALL, Writer
from millstream.connectors.kafka.write.properties import producer_properties
from millstream.dev.kafka import start_broker

pytestmark = pytest.mark.server


def rows(value: bytes) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"key": [b"k"], "value": [value]})


def test_an_open_writer_goes_on_after_a_restart() -> None:
    with start_broker() as broker:
        cluster, group = Cluster(broker), f"g{uuid.uuid4().hex[:6]}"
        topic = cluster.topic(4)
        client = producer_properties(KafkaSink(topic=topic, bootstrap_servers=cluster.address))
        writer = Writer(client, group, SMALL)
        for epoch in range(4):
            if epoch == 2:
                broker.kill()
                broker.start()
            job = LaneJob(client, group, topic, epoch, "digest", "run", seconds=30)
            assert lanes.write(job, writer, rows(str(epoch).encode())).outcome == "done"
        assert [message.value() for message in cluster.messages(topic)] == [b"0", b"1", b"2", b"3"]
