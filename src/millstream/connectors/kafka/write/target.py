"""The topic that a sink writes to, on the driver: created if missing, and verified at every start.

The markers belong to the topic. Another cluster, or a topic that was deleted and created again, does not have them: the ids pinned at the
first start detect that before a row is written twice.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.kafka import KafkaAdmin
from millstream.connectors.kafka.values import FormatOptions
from millstream.connectors.kafka.worker.lanes import LaneJob, Marker, marker
from millstream.connectors.kafka.worker.producers import SMALL, marker_group
from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError, nearest
from millstream.plan.components import NodeContext

_FILE, _SECONDS = "target.json", 20
_LOOK_SECONDS = 0.1
_ROOMY = 1 << 20


class NewTopic(BaseModel):
    """How to create a missing topic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    partitions: int | None = Field(default=None, ge=1)
    """The number of partitions. Default: the cluster's."""
    replication: int | None = Field(default=None, ge=1)
    """The replication factor. Default: the cluster's."""
    config: FormatOptions = Field(default={})
    """The topic's own configuration, such as `cleanup.policy: compact`."""


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """The topic at the start of a run."""

    partitions: int
    limit: int
    """The maximum size of a message in bytes."""


def find(admin: KafkaAdmin, client: Mapping[str, str], topic: str, create: NewTopic | None, context: NodeContext) -> TopicTarget:
    """The topic, created if necessary, and the same as at the last start."""
    names = admin.names()
    if topic not in names:
        if create is None:
            help_ = nearest(topic, names) or "`create: true` makes it"
            raise RunError(Diagnostic("MS091", f"Kafka has no topic `{topic}`, which `{context.name}` writes to", help=help_))
        _create(client, topic, create)
        _await(admin, topic)
    found = admin.topics([topic])[topic]
    _require_same({"cluster": admin.cluster(), topic: found.id}, topic, context)
    return TopicTarget(found.partitions, _limit(client, topic))


def require_client() -> None:
    """Require Python's client, which transactions need."""
    if importlib.util.find_spec("confluent_kafka") is None:
        message = "a Kafka sink needs the package `confluent-kafka`"
        raise SetupError(Diagnostic("MS045", message, help="`pip install 'millstream[kafka]'`, here and on the workers"))


def was_reached(context: NodeContext) -> bool:
    """Whether the cluster has answered at an earlier start."""
    return context.storage.exists(_FILE)


def markers(client: Mapping[str, str], group: str, topic: str, partitions: int) -> dict[int, tuple[int, str]]:
    """Lane → its last committed epoch and digest. A transaction that a killed owner left open is ignored: it ends when the lane is
    opened again.
    """
    from confluent_kafka import Consumer, KafkaException

    job = LaneJob(client, group, topic, 0, "", "", seconds=_SECONDS)
    found: dict[int, Marker | None] = {}
    for lanes in ((SMALL,), range(partitions)):
        own = {"group.id": marker_group(group, lanes[0]), "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        consumer = Consumer({**client, **own})
        try:
            found |= {lane: marker(job, lane, consumer) for lane in lanes}
        except KafkaException as error:
            raise TemporaryError(Diagnostic("MS090", f"Kafka does not say what `{topic}` holds: {error.args[0].str()}")) from None
        finally:
            consumer.close()
    return {lane: (held.epoch, held.digest) for lane, held in found.items() if held is not None}


def _create(client: Mapping[str, str], topic: str, options: NewTopic) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import NewTopic as Request  # type: ignore[attr-defined]  # the package does not list its names

    admin = AdminClient(dict(client))
    request = Request(topic, options.partitions or -1, options.replication or -1, config=dict(options.config))
    (future,) = admin.create_topics([request], operation_timeout=_SECONDS).values()
    try:
        future.result(_SECONDS)
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise RunError(Diagnostic("MS091", f"topic `{topic}` cannot be created: {error.args[0].str()}")) from None


def _await(admin: KafkaAdmin, topic: str) -> None:
    """Wait until all brokers know a new topic: the first answer comes earlier."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            admin.topics([topic])
            return
        except RunError as error:
            if error.diagnostics[0].code != "MS091" or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_SECONDS)


def _limit(client: Mapping[str, str], topic: str) -> int:
    """The topic's own limit; Kafka's default for a user without permission to read it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # as above

    resource: Any = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient(dict(client))  # kept in a variable: its answers end with it
    (future,) = admin.describe_configs([resource]).values()
    try:
        return int(future.result(_SECONDS)["max.message.bytes"].value)
    except (KafkaException, KeyError):
        return _ROOMY


def _require_same(now: dict[str, str], topic: str, context: NodeContext) -> None:
    data = context.storage.read(_FILE)
    pinned = json.loads(data) if data else {}
    if pinned.get("cluster", now["cluster"]) != now["cluster"]:
        message = f"`{context.name}` has written to the Kafka cluster `{pinned['cluster']}` until now, and this one is `{now['cluster']}`"
        raise RunError(
            Diagnostic("MS094", message, help="correct `bootstrap_servers`, or `--reset QUERY` writes everything to the new one")
        )
    if pinned.get(topic, now[topic]) != now[topic]:
        message = f"topic `{topic}` was deleted and created again since `{context.name}` wrote to it"
        detail = "its rows of the current epoch were deleted with it"
        raise RunError(Diagnostic("MS094", message, detail=detail, help="`--reset QUERY` writes everything again"))
    if data is None or topic not in pinned:
        context.storage.put(_FILE, json.dumps({**pinned, **now}).encode())
