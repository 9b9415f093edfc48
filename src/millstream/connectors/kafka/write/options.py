"""The options of a Kafka sink: where to write, how rows become messages, and how messages are sent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.connectors.kafka.connection import KafkaComponent
from millstream.connectors.kafka.parts import Format
from millstream.connectors.kafka.values import FormatOptions
from millstream.connectors.kafka.write.target import NewTopic
from millstream.plan.components import Guarantee
from millstream.plan.options import Columns, Duration, Size


class ColumnHeader(BaseModel):
    """A header with the value of a column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    """The column. A null adds no header."""


class KafkaSinkOptions(KafkaComponent):
    """The options of a Kafka sink."""

    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    """The topic."""
    format: Format = "json"
    """The format of values: `avro` records, `json_schema` objects or `protobuf` messages, whose schema goes to a `schema_registry`;
    `json` objects, `csv` rows, `string` for the text of one column, `bytes` for one column unchanged."""
    register_: bool = Field(default=True, alias="register")
    """Whether the schema of the columns is registered when it is new. If not, rows are written with the subject's latest schema."""
    options: FormatOptions = Field(default={})
    """Options of Spark's writer for `json` or `csv`, such as `timestampFormat`."""
    key: Columns = ()
    """The columns of the message's key. Default: the primary key, or no key."""
    key_format: Literal["string", "json", "bytes", "avro"] = "string"
    """The format of keys: text (several columns are joined by `:`), a JSON object, bytes, or an Avro record."""
    value: Columns = ()
    """The columns of the message's value. Default: all except the operation and headers; for text and bytes the column `value`, or the
    first that is not in the key."""
    headers: dict[str, str | ColumnHeader] = Field(default={})
    """Headers: a text, or `{column: NAME}`. Rows of a changelog have the header `dbz.op` too: `c`, `u` or `d`; a column `traceparent`
    becomes the header of that name, unless `value` names it."""
    deletes: Literal["tombstone", "row", "drop"] = "tombstone"
    """How deletes of a changelog are written: a message with the key and no value, a message like others, or nothing."""
    guarantee: Guarantee = "exactly_once"
    """`exactly_once`, or `at_least_once` with Spark's own writer: cheaper, but rows are written twice when an epoch is repeated."""
    create: bool | NewTopic = False
    """Whether to create the topic if it is missing: `true`, or `{partitions: 4, replication: 3, config: {cleanup.policy: compact}}`."""
    lanes: int | None = Field(default=None, ge=1)
    """The number of writers. Default: one per core, and at most one per partition."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """The compression of messages."""
    linger: Duration = Duration("5ms")
    """How long a message waits to share a request with others."""
    batch_size: Size = Size("1MB")
    """The most bytes of a request, for one partition."""
    max_message_size: Size | None = None
    """The most bytes of a message. Default and maximum: the topic's limit. A row whose message is larger is a reject."""
    transaction_timeout: Duration = Duration("10m")
    """The longest time for an epoch in a lane; the brokers' `transaction.max.timeout.ms` is the upper limit."""
    producer: FormatOptions = Field(default={})
    """Properties of the producer (librdkafka's), such as `request.timeout.ms`."""
