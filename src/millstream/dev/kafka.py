"""A real Kafka broker for one: KRaft, one node, transactions on, on loopback, its data in a temporary folder.

The broker runs inside a small JVM gateway and not through its own `main`. That gives three things which `main` has not: formatting and
serving share one start of Java, `startup` returns when clients can connect (nothing polls), and the JVM reads its standard input and ends
when that ends: the pipe closes with Python, whichever way Python goes. Jars are locked like those of Spark's connectors.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from millstream.dev.brokerjars import BROKER_JARS
from millstream.dev.ports import HOST, free_port, require_free
from millstream.engine.jars import fetch_jars
from millstream.engine.java import Java, find_java
from millstream.engine.machine import find_spark
from millstream.engine.scratch import Scratch, make_scratch
from millstream.errors import Diagnostic, SetupError

_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_GATEWAY = ("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")
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
_TAIL = 12


@dataclass
class Broker:
    """A broker that runs, or that was killed and can be started again with its data."""

    java: Java
    jars: tuple[Path, ...]
    scratch: Scratch
    port: int
    listeners: tuple[str, ...] = ()
    """More listeners, such as `SSL://127.0.0.1:9093`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """More of the broker's properties, or others."""
    formatting: tuple[str, ...] = ()
    """More words for the formatting of its storage."""
    process: subprocess.Popen[bytes] | None = None
    gateway: Any = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> Path:
        return self.scratch.path / "broker.log"

    def start(self) -> None:
        """Start, or start again; returns when clients can connect."""
        properties, new = self.scratch.path / "server.properties", not (self.scratch.path / "data").exists()
        if new:
            properties.write_text(self._properties(), encoding="utf-8")
        self._launch()
        try:
            self._serve(str(properties), new)
        except Exception as error:  # noqa: BLE001 — whatever Java says is told
            reason = _reason(error)
            self._end()
            raise SetupError(self._failure(reason)) from None

    def _properties(self) -> str:
        more, data = "".join(f",{listener}" for listener in self.listeners), self.scratch.path / "data"
        text = _PROPERTIES.format(host=HOST, port=self.port, controller=free_port(), data=data, more=more)
        return text + "".join(f"{name}={value}\n" for name, value in self.properties.items())

    def kill(self) -> None:
        """As `kill -9` does: nothing is flushed, nobody is told."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        """End it and remove its data."""
        self._end()
        self.scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _launch(self) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        path = os.pathsep.join(map(str, self.jars))
        command: list[str | Path] = [self.java.executable, *_FLAGS, "-cp", path, *_GATEWAY]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True, cwd=self.scratch.path
            )
        assert self.process.stdout is not None
        port, secret = self.process.stdout.readline().strip(), self.process.stdout.readline().strip()
        if not port.isdigit():
            self._end()
            raise SetupError(self._failure("its JVM ended before it was ready"))
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=secret.decode()))

    def _serve(self, properties: str, new: bool) -> None:
        jvm = self.gateway.jvm
        if new:
            id_ = str(jvm.org.apache.kafka.common.Uuid.randomUuid().toString())
            words = ["format", "--standalone", "-t", id_, "-c", properties, *self.formatting]
            arguments = self.gateway.new_array(jvm.String, len(words))
            for index, word in enumerate(words):
                arguments[index] = word
            jvm.kafka.tools.StorageTool.execute(arguments, jvm.System.err)
        config = jvm.kafka.server.KafkaConfig.fromProps(jvm.org.apache.kafka.common.utils.Utils.loadProps(properties))
        jvm.kafka.server.KafkaRaftServer(config, jvm.org.apache.kafka.common.utils.Time.SYSTEM).startup()

    def _end(self) -> None:
        if self.gateway is not None:
            with suppress(Exception):  # a JVM that is gone refuses the goodbye
                self.gateway.close(keep_callback_server=True)
            self.gateway = None
        if self.process is None:
            return
        process, self.process = self.process, None
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _failure(self, reason: str) -> Diagnostic:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if not line.startswith("\tat ")]
        message = f"the Kafka broker did not start: {reason}"
        return Diagnostic("MS047", message, detail="\n".join(lines[-_TAIL:]), help="`millstream doctor` checks the machine")


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


def _reason(error: Exception) -> str:
    """The first line of the innermost Java exception."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return str(error).partition("\n")[0]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.toString()).partition("\n")[0]
