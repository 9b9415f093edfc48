"""Administration of a Kafka cluster through the Java client of Spark's connector, with the same login.

Every request has a time limit. Before the first one each address is tested with a plain connection, because the Java client reports a wrong
host, a wrong port and a firewall all as "timed out". Failures become diagnostics.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError, nearest

Offsets = dict[str, dict[int, int]]
"""topic → partition → offset"""
_SECONDS = 20
_TIMES = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
_REFUSED = ("Authentication", "Authorization", "LoginException", "UnsupportedSaslMechanism", "IllegalSaslState")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in the cluster; a topic that is deleted and created again has another id."""

    name: str
    id: str
    partitions: int


class KafkaAdmin:
    """Requests to a cluster. `open_admin` closes it."""

    def __init__(self, jvm: Any, client: Any, servers: str) -> None:
        self._jvm, self._client, self._servers = jvm, client, servers
        self._admin = jvm.org.apache.kafka.clients.admin

    def cluster(self) -> str:
        """The cluster's id."""
        return str(self._answer(self._client.describeCluster().clusterId()))

    def names(self) -> list[str]:
        """All topics except Kafka's internal ones."""
        return sorted(map(str, self._answer(self._client.listTopics().names())))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of these names; a missing one is an error."""
        wanted, known = list(names), self.names()
        missing = [name for name in wanted if name not in known]
        if missing:
            message = f"Kafka at `{self._servers}` has no topic `{missing[0]}`"
            raise RunError(Diagnostic("MS091", message, help=nearest(missing[0], known) or "create it first"))
        asked = self._jvm.java.util.ArrayList()
        for name in wanted:
            asked.add(name)
        found = self._answer(self._client.describeTopics(asked).allTopicNames()) if wanted else {}
        return {name: Topic(name, str(found[name].topicId().toString()), int(found[name].partitions().size())) for name in wanted}

    def offsets(self, topics: Iterable[Topic], at: Literal["earliest", "latest"] | int) -> Offsets:
        """Offsets at the beginning, at the end, or of the first message at or after a time in milliseconds; the end if there is none."""
        spec = self._admin.OffsetSpec
        wanted = spec.earliest() if at == "earliest" else spec.latest() if at == "latest" else spec.forTimestamp(at)
        asked = self._jvm.java.util.HashMap()
        for topic in topics:
            for partition in range(topic.partitions):
                asked.put(self._jvm.org.apache.kafka.common.TopicPartition(topic.name, partition), wanted)
        level = self._jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED
        found = self._answer(self._client.listOffsets(asked, self._admin.ListOffsetsOptions(level)).all())
        offsets: Offsets = {}
        for place in asked.keySet():
            offsets.setdefault(str(place.topic()), {})[int(place.partition())] = int(found[place].offset())
        if isinstance(at, str) or all(offset >= 0 for parts in offsets.values() for offset in parts.values()):
            return offsets
        return _fill_missing(offsets, self.offsets(topics, "latest"))

    def commit(self, group: str, offsets: Mapping[str, Mapping[Any, int]]) -> None:
        """Commit the group's offsets, so that tools can show its lag."""
        metadata = self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        places = self._jvm.java.util.HashMap()
        for topic, parts in offsets.items():
            for partition, offset in parts.items():
                places.put(self._jvm.org.apache.kafka.common.TopicPartition(topic, int(partition)), metadata(int(offset)))
        self._answer(self._client.alterConsumerGroupOffsets(group, places).all())

    def close(self) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    def _answer(self, future: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return future.get(_SECONDS, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            raise _failure(error.java_exception, self._servers) from None


@contextmanager
def open_admin(jvm: Any, properties: Mapping[str, str]) -> Iterator[KafkaAdmin]:
    """A client with these Kafka properties, closed at the end."""
    from py4j.java_gateway import JavaPackage
    from py4j.protocol import Py4JJavaError

    servers, java = properties["bootstrap.servers"], jvm.org.apache.kafka.clients.admin.AdminClient
    if isinstance(java, JavaPackage):  # py4j returns this for a missing class
        help_ = "your own session needs them as `spark.jars`; `millstream fetch kafka` prints their paths"
        raise SetupError(Diagnostic("MS042", "this Spark session runs without the jars of the extra `kafka`", help=help_))
    _require_reachable(servers)
    settings = jvm.java.util.Properties()
    for name, value in {**_TIMES, **properties}.items():
        settings.setProperty(name, value)
    try:
        admin = KafkaAdmin(jvm, java.create(settings), servers)
    except Py4JJavaError as error:
        raise _failure(error.java_exception, servers) from None
    try:
        yield admin
    finally:
        admin.close()


def _require_reachable(servers: str, seconds: float = 5) -> None:
    """At least one address accepts a connection; otherwise report the error of each."""
    said = []
    for server in filter(None, (part.strip() for part in servers.split(","))):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), seconds).close()
            return
        except ValueError:
            said.append(f"{server}: is not HOST:PORT")
        except OSError as error:
            said.append(f"{server}: {(error.strerror or str(error)).lower()}")
    message = f"no Kafka broker can be reached at `{servers}`"
    raise TemporaryError(Diagnostic("MS090", message, detail="\n".join(said), help="check the address, and that this machine can reach it"))


def _failure(exception: Any, servers: str) -> RunError:
    """A Java exception and its causes, mapped to a few diagnostics that a user can act on."""
    names, words = [], ""
    while exception is not None:
        names.append(str(exception.getClass().getSimpleName()))
        words = str(exception.getMessage() or "").partition("\n")[0] or words
        exception = exception.getCause()
    if any(mark in name for name in names for mark in _REFUSED):
        help_ = "check the user, password and permissions under `security`"
        return RunError(Diagnostic("MS092", f"Kafka at `{servers}` refuses access: {words}", help=help_))
    if "UnknownTopicOrPartitionException" in names:
        return RunError(Diagnostic("MS091", f"Kafka at `{servers}` does not know the topic: {words}"))
    if any(name in {"TimeoutException", "DisconnectException", "RetriableException"} for name in names):
        help_ = "the address accepts connections: check that `security.protocol` fits the port"
        return TemporaryError(Diagnostic("MS090", f"Kafka at `{servers}` does not answer: {words}", help=help_))
    return RunError(Diagnostic("MS079", f"Kafka at `{servers}` failed: {names[-1]}: {words}"))


def _fill_missing(offsets: Offsets, ends: Offsets) -> Offsets:
    return {
        topic: {partition: offset if offset >= 0 else ends[topic][partition] for partition, offset in parts.items()}
        for topic, parts in offsets.items()
    }
