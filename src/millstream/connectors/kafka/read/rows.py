"""The source's options as Spark options, and its messages as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.connectors.kafka.parts import MessagePart
from millstream.connectors.kafka.read.decoding import Decoding, decode
from millstream.connectors.kafka.schemas.protofile import file_part
from millstream.connectors.kafka.schemas.registered import UnknownIds, is_registered, registered_part
from millstream.plan import types
from millstream.plan.components import REJECT, NodeContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.kafka.source import KafkaSource


_FETCH_WAIT_MS = "1"
"""How long a broker may hold back an answer without messages. Spark asks for the offsets of a partition after each fetch, on the same
connection, and the broker answers in order: behind a fetch that waits for new messages. Kafka's default, 500 ms, would be the time of a
task. Nothing polls in between: tasks fetch only messages that are known to exist."""
_REAL_TIME_WAIT_MS = "20"
"""As above. A task in real-time mode does poll all the time, and only the end of an epoch waits."""
_TIMEOUTS = {"request.timeout.ms": "10000", "default.api.timeout.ms": "15000"}
"""How long brokers may be silent until the query fails and restarts. Kafka's default is a minute, which Spark repeats in silence."""


def spark_options(source: KafkaSource, context: NodeContext) -> dict[str, str]:
    """The options of Spark's connector, without the start."""
    wait = _REAL_TIME_WAIT_MS if context.real_time else _FETCH_WAIT_MS
    chosen = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": source.topic or ",".join(source.topics)}
    options = {"failOnDataLoss": str(source.on_data_loss == "fail").lower(), "kafka.isolation.level": "read_committed", **chosen}
    options["kafka.fetch.max.wait.ms"] = wait
    options["fetchOffset.numRetries"] = "1"  # the query restarts as `settings.restart` says
    given = {**source.consumer, **source.client()}
    timeouts = {} if _TIMEOUTS.keys() & given.keys() else _TIMEOUTS  # Kafka wants them to fit each other
    options |= {f"kafka.{name}": value for name, value in {**timeouts, **given}.items()}
    if source.include_metadata or source.filter or source.operation_header or source.trace_context or context.traced:
        options["includeHeaders"] = "true"
    return options


def pace(source: KafkaSource) -> dict[str, str]:
    """The size of an epoch; a bounded source does not wait for more."""
    options = {"maxOffsetsPerTrigger": str(source.max_rows_per_epoch)} if source.max_rows_per_epoch else {}
    if source.min_rows and not source.bounded:
        options |= {"minOffsetsPerTrigger": str(source.min_rows), "maxTriggerDelay": f"{source.max_wait.milliseconds}ms"}
    return options


def first_bad(source: KafkaSource, frame: DataFrame, context: NodeContext, topics: Sequence[str], unknown: UnknownIds) -> str:
    """The first message that does not fit, with its position."""
    judged = rows(source, frame, replace(context, isolate=True), topics, unknown)
    found = judged.where(f"{REJECT} IS NOT NULL").select(f"{REJECT}.*").head()
    if found is None:
        return ""
    message = json.loads(found["raw"])
    return f"topic {message['topic']}, partition {message['partition']}, offset {message['offset']}: {found['error']}"


def rows(source: KafkaSource, frame: DataFrame, context: NodeContext, topics: Sequence[str], unknown: UnknownIds) -> DataFrame:
    """Spark's messages as the source's rows."""
    valued = frame.where("value IS NOT NULL") if source.envelope or source.tombstones == "drop" else frame
    strict, spark = not context.isolate, frame.sparkSession
    if is_registered(source, "value"):
        value: MessagePart = registered_part(source, topics, "value", spark, context, unknown)
    elif source.schema_file is not None:
        value = file_part(source.schema_file, source.record or "", source.values())
    else:
        value = MessagePart(source.format, source.values(), source.options, "value", strict, envelope=source.envelope is not None)
    key = MessagePart(source.key_format, types.schema(source.key), {}, "key", strict) if source.key else None
    if is_registered(source, "key"):
        key = registered_part(source, topics, "key", spark, context, unknown)
    header, deletes = source.operation_header or "", source.tombstones == "delete"
    decoding = Decoding(
        context.name,
        value,
        key,
        source.filter,
        source.include_metadata,
        context.isolate,
        header,
        deletes,
        trace=source.trace_context,
        traced=context.traced,
    )
    return decode(valued, decoding)
