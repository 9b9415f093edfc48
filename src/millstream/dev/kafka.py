"""A real Kafka broker for one: KRaft, one node, transactions on, on loopback, its data in a temporary folder.

The broker runs inside a small JVM gateway (`gateway.py`) and not through its own `main`: formatting and serving share one start of Java,
`startup` returns when clients can connect, and the JVM ends with Python. Jars are locked like those of Spark's connectors.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from millstream.dev.broker_jars import BROKER_JARS
from millstream.dev.gateway import Gateway, Server
from millstream.dev.ports import HOST, free_port, require_free
from millstream.jvm.jars import fetch_jars
from millstream.jvm.java import find_java
from millstream.jvm.machine import find_spark
from millstream.jvm.scratch import make_scratch

_FLAGS = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}{more}
advertised.listeners=PLAINTEXT://{host}:{port}{more}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
min.insync.replicas=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
"""


@dataclass
class Broker(Server):
    """A broker that runs, or that was killed and can be started again with its data."""

    name: ClassVar[str] = "the Kafka broker"

    listeners: tuple[str, ...] = ()
    """More listeners, such as `SSL://127.0.0.1:9093`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """More of the broker's properties, or others."""
    formatting: tuple[str, ...] = ()
    """More words for the formatting of its storage."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @cached_property
    def gateway(self) -> Gateway:
        return Gateway(self.java, self.jars, _FLAGS, self.scratch.path / "broker.log")

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self.gateway.process

    @property
    def log(self) -> Path:
        return self.gateway.log

    def _properties(self) -> str:
        more, data = "".join(f",{listener}" for listener in self.listeners), self.scratch.path / "data"
        text = _PROPERTIES.format(host=HOST, port=self.port, controller=free_port(), data=data, more=more)
        return text + "".join(f"{name}={value}\n" for name, value in self.properties.items())

    def kill(self) -> None:
        """Like `kill -9`: nothing is flushed, clients are not informed."""
        self.gateway.kill()

    def serve(self) -> None:
        jvm, properties = self.gateway.jvm, self.scratch.path / "server.properties"
        if not (self.scratch.path / "data").exists():
            properties.write_text(self._properties(), encoding="utf-8")
            id_ = str(jvm.org.apache.kafka.common.Uuid.randomUuid().toString())
            words = ["format", "--standalone", "-t", id_, "-c", str(properties), *self.formatting]
            jvm.kafka.tools.StorageTool.execute(self.gateway.texts(words), jvm.System.err)
        config = jvm.kafka.server.KafkaConfig.fromProps(jvm.org.apache.kafka.common.utils.Utils.loadProps(str(properties)))
        jvm.kafka.server.KafkaRaftServer(config, jvm.org.apache.kafka.common.utils.Time.SYSTEM).startup()


def start_broker(
    port: int = 0,
    environ: Mapping[str, str] = os.environ,
    progress: Callable[[str], None] = lambda _: None,
    listeners: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
    formatting: tuple[str, ...] = (),
) -> Broker:
    """A new broker that answers; `port` 0 takes a free one. Jars that are missing are fetched first."""
    if port:
        require_free(port, "the Kafka broker")
    java, spark = find_java(environ), find_spark()
    jars = fetch_jars(BROKER_JARS, java, progress, environ, spark)
    gateway = [path for path in spark.jars if path.name.startswith("py4j-")]
    broker = Broker(java, (*jars, *gateway), make_scratch(), port or free_port(), listeners, properties or {}, formatting)
    try:
        broker.start()
    except BaseException:
        broker.stop()
        raise
    return broker
