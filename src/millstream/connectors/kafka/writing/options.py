"""The options of a Kafka sink: where to write, how rows become messages, and how messages are sent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.connectors.kafka.connection import KafkaComponent
from millstream.connectors.kafka.reading.parsing import Format
from millstream.connectors.kafka.values import FormatOptions
from millstream.connectors.kafka.writing.target import NewTopic
from millstream.plan.components import Guarantee
from millstream.plan.options import Columns, Duration, Size


class ColumnHeader(BaseModel):
    """A header whose value is a column's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    """The column. A null makes no header."""


class KafkaSinkOptions(KafkaComponent):
    """What a sink can be told."""

    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    """The topic."""
    format: Format = "json"
    """How values are written: `avro` records, `json_schema` objects or `protobuf` messages, whose schema goes to a `schema_registry`;
    `json` objects, `csv` rows, `string` for the text of one column, `bytes` for one as it is."""
    register_: bool = Field(default=True, alias="register")
    """Whether the schema of the columns is registered when it is new. If not, rows are written with the subject's latest schema."""
    options: FormatOptions = Field(default={})
    """Options of Spark's writer for `json` or `csv`, such as `timestampFormat`."""
    key: Columns = ()
    """The columns of the message's key. Default: the primary key, or no key."""
    key_format: Literal["string", "json", "bytes", "avro"] = "string"
    """How keys are written: as text (several columns are joined by `:`), as a JSON object, as bytes, or as an Avro record."""
    value: Columns = ()
    """The columns of the message's value. Default: all but the operation and those that are headers; for text and bytes the column
    `value`, or the first that is not in the key."""
    headers: dict[str, str | ColumnHeader] = Field(default={})
    """Headers: a text, or `{column: NAME}`. Rows of a changelog have the header `dbz.op` too: `c`, `u` or `d`; a column `traceparent`
    becomes the header of that name, unless `value` names it."""
    deletes: Literal["tombstone", "row", "drop"] = "tombstone"
    """What becomes of the deletes of a changelog: a message with the key and no value, a message like others, or nothing."""
    guarantee: Guarantee = "exactly_once"
    """`exactly_once`, or `at_least_once` by Spark's own writer: cheaper, and rows come twice when an epoch is repeated."""
    create: bool | NewTopic = False
    """Whether to make the topic when it is missing: `true`, or `{partitions: 4, replication: 3, config: {cleanup.policy: compact}}`."""
    lanes: int | None = Field(default=None, ge=1)
    """How many writers there are. Default: one per core, and never more than the topic has partitions."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """How messages are compressed."""
    linger: Duration = Duration("5ms")
    """How long a message waits for others to share a request."""
    batch_size: Size = Size("1MB")
    """The most bytes that share a request, for one partition."""
    max_message_size: Size | None = None
    """The most bytes of a message. Default: what the topic takes, and never more than that. A row whose message is larger is a bad row,
    by `on_error`."""
    transaction_timeout: Duration = Duration("10m")
    """The longest that a lane may take for an epoch; the brokers' `transaction.max.timeout.ms` is the upper limit."""
    producer: FormatOptions = Field(default={})
    """Properties of the producer (librdkafka's), such as `request.timeout.ms`."""
