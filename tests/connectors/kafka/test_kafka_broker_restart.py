"""A writer that stays open survives a restart of the only broker. With the client's default it waits for ever."""

from __future__ import annotations

import threading
import time
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


def restarted(changes: dict[str, str], seconds: float, *, completed: bool = False) -> tuple[list[str], list[bytes]]:
    """The outcomes of two epochs before a restart and two after it, and what the topic has then. `completed`: the broker is killed after it
    has completed what it confirmed.
    """
    with start_broker() as broker:
        cluster, group = Cluster(broker), f"g{uuid.uuid4().hex[:6]}"
        topic = cluster.topic(4)
        client = {**producer_properties(KafkaSink(topic=topic, bootstrap_servers=cluster.address)), **changes}
        writer, outcomes = Writer(client, group, SMALL), list[str]()

        def write(epoch: int) -> None:
            job = LaneJob(client, group, topic, epoch, "digest", "run", seconds=seconds)
            outcomes.append(lanes.write(job, writer, rows(str(epoch).encode())).outcome)

        for epoch in range(4):
            if epoch == 2:
                while completed and len(cluster.messages(topic)) < 2:
                    time.sleep(0.1)
                broker.kill()
                broker.start()
            thread = threading.Thread(target=write, args=[epoch], daemon=True)  # it may wait for ever
            thread.start()
            thread.join(seconds)
            if thread.is_alive():
                break
        return outcomes, [message.value() for message in cluster.messages(topic)]


def test_an_open_writer_goes_on_after_a_restart() -> None:
    assert restarted({}, 30) == (["done"] * 4, [b"0", b"1", b"2", b"3"])


def test_with_the_default_of_the_client_it_waits_for_ever() -> None:
    """The control. A transaction that is not complete stays invisible while its client waits."""
    outcomes, values = restarted({"metadata.recovery.strategy": "rebootstrap"}, 10, completed=True)
    assert (outcomes[:2], values) == (["done"] * 2, [b"0", b"1"])
    assert "done" not in outcomes[2:]
