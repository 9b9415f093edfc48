"""The clients' properties: librdkafka's producer in the lanes, Java's in Spark's own writer, and those of admin clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.connectors.kafka.sink import KafkaSink

_USUAL = 1_000_000
_ROOM = 65_536


def admin_properties(sink: KafkaSink) -> dict[str, str]:
    return {**sink.native_client(), "log_level": "0"}


def producer_properties(sink: KafkaSink, limit: int = _USUAL) -> dict[str, Any]:
    """For a lane's producer. `limit` is the size limit of a message; larger ones were found before."""
    return {
        **admin_properties(sink),
        "partitioner": "murmur2_random",  # as Java's clients do
        "acks": "all",
        "compression.type": sink.compression,
        "linger.ms": sink.linger.milliseconds,
        "batch.size": sink.batch_size.bytes,
        "batch.num.messages": 100_000,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 131_072,
        "message.max.bytes": max(limit, _USUAL) + _ROOM,
        "transaction.timeout.ms": sink.transaction_timeout.milliseconds,
        "delivery.report.only.error": True,
        "metadata.recovery.strategy": "none",  # else an open transactional producer waits for ever after its only broker restarts
        "topic.metadata.propagation.max.ms": 5000,  # the topic existed at the start: do not wait for a deleted one
        **sink.producer,
    }


def spark_options(sink: KafkaSink) -> dict[str, str]:
    """For Spark's own writer."""
    own = {"compression.type": sink.compression, "linger.ms": str(sink.linger.milliseconds), "batch.size": str(sink.batch_size.bytes)}
    client = {f"kafka.{name}": value for name, value in {**own, "acks": "all", **sink.client()}.items()}
    return {**client, "topic": sink.topic, "includeHeaders": "true"}
