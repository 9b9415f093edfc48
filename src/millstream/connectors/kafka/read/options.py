"""The options of a Kafka source: what to read, how messages become rows, where it begins and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from millstream.connectors.kafka.connection import KafkaComponent
from millstream.connectors.kafka.parts import Format
from millstream.connectors.kafka.read.positions import Position
from millstream.connectors.kafka.values import FormatOptions
from millstream.plan.options import Columns, Duration, Expression, SchemaMap


class BoundedMode(BaseModel):
    """Read up to an end that is fixed at the first start, then end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read what is there, then end."""
    until: Position = "latest"
    """Where the end is: `latest` (what is there at the first start), a time that has passed, or offsets by partition."""


class ContinuousMode(BaseModel):
    """Keep reading messages as they arrive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["continuous"]
    """Wait for more."""


class KafkaSourceOptions(KafkaComponent):
    """The options of a Kafka source."""

    topic: str | None = None
    """The topic. One of `topic`, `topics` and `pattern` is needed."""
    topics: Columns = ()
    """Several topics with messages of one kind."""
    pattern: str | None = None
    """All topics whose whole name matches this regular expression, including later ones."""
    format: Format = "avro"
    """The format of values: `avro` records, `json_schema` objects or `protobuf` messages, whose schemas are in a `schema_registry`;
    `json` objects, `csv` rows, `string` for text, `bytes` unchanged. Protobuf is decoded in Python's workers, and is the slowest."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type, for `json` and `csv`. Text and bytes have one column, `value`. With a registry it selects columns; the default is
    the subject's latest schema at the first start, which stays the reader's schema."""
    schema_file: Path | None = None
    """A file with the schema, for `protobuf` without a registry: a `.proto` text, which may import others of its folder, or a compiled
    descriptor set. Values are plain messages then; `record` selects the message."""
    options: FormatOptions = Field(default={})
    """Options of Spark's parser for `json` or `csv`, such as `delimiter` or `timestampFormat`."""
    key: SchemaMap | None = None
    """Columns of the message's key: column → type. Default: the key is not read."""
    key_format: Literal["string", "json", "bytes", "avro"] = "string"
    """The format of keys: text (several columns are joined by `:`), a JSON object, bytes, or Avro, whose schema is in the registry and
    need not be given."""
    envelope: Literal["debezium"] | None = None
    """`debezium`: values are Debezium's envelopes, in Avro or in JSON with or without their schema. The columns are those of the row,
    `_op` is the operation (`i`, `u`, `d`), `_seq` the order. Messages without a value, which follow deletes, are ignored."""
    tombstones: Literal["bad", "delete", "drop"] = "bad"
    """The meaning of a message without a value: a reject, a delete of its key (`_op` is `d`, the columns of `key` are set), or ignored."""
    operation_header: str | None = None
    """A header with the operation, such as `dbz.op`: `r` and `c` are inserts, `u` updates, `d` deletes. Rows then have `_op`; a message
    without the header is an insert."""
    starting_offsets: Position = "earliest"
    """Where to begin at the first start: `earliest`, `latest`, a time such as `2026-01-01T00:00:00Z`, or offsets by partition (`{0: 100,
    1: latest}`; with several topics `{orders: {0: 100}}`). Other partitions begin at their first message."""
    mode: Annotated[BoundedMode | ContinuousMode, Field(discriminator="type")] = ContinuousMode(type="continuous")
    """`{type: continuous}`, or `{type: bounded, until: latest}`."""
    include_metadata: bool = False
    """Whether rows have the columns `__kafka_topic`, `__kafka_partition`, `__kafka_offset`, `__kafka_timestamp`, `__kafka_headers` and
    `__kafka_key`."""
    trace_context: bool = False
    """Whether rows have a column `traceparent`: the header of that name, or null when it is missing or not valid W3C. A Kafka sink
    writes the column as the header again; a `SELECT` in between must name it."""
    filter: Expression | None = None
    """Keep the rows for which this is true. It may use all columns, including those of `include_metadata`."""
    max_rows_per_epoch: int | None = Field(default=None, ge=1)
    """The most messages per epoch. Default: all that are there."""
    min_rows: int | None = Field(default=None, ge=1)
    """Wait for this many messages before an epoch begins, but no longer than `max_wait`."""
    max_wait: Duration = Duration("1m")
    """How long `min_rows` may wait."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """What happens when unread messages no longer exist, because of Kafka's retention or because the topic was created again: the
    pipeline stops, or continues and counts the gap in offsets as `lost`."""
    consumer: FormatOptions = Field(default={})
    """Properties of Kafka's consumer, such as `fetch.max.bytes`."""

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, values: Any) -> Any:
        if isinstance(values, dict) and "data_format" in values and "format" not in values:
            return {("format" if name == "data_format" else name): value for name, value in values.items()}
        return values
