"""Kafka as a source: Spark's own connector reads, the cluster is asked first, and messages become rows on the way.

Offsets are Spark's, in the checkpoint. What the checkpoint cannot know by itself is pinned beside them at the first start: which
cluster and which topics (by their ids) the offsets belong to, and where a bounded source ends. The consumer group gets the committed
offsets for others to see; nothing is ever read from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from millstream.clients.kafka import KafkaAdmin, Topic, opened
from millstream.connectors.kafka import offsets
from millstream.connectors.kafka.connection import KafkaComponent
from millstream.connectors.kafka.decoding import CHANGES, METADATA, TRACE, before
from millstream.connectors.kafka.identity import known, require_same
from millstream.connectors.kafka.parsing import Format
from millstream.connectors.kafka.positions import Position, pin_ends, pinned_ends, start_options
from millstream.connectors.kafka.protofile import file_columns
from millstream.connectors.kafka.reading import first_bad, pace, rows, spark_options
from millstream.connectors.kafka.registered import is_registered, key_of, known_columns, learn
from millstream.connectors.kafka.registry import LOOK_SECONDS
from millstream.connectors.kafka.values import FormatOptions, file_problem, option_problems
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.plan import types
from millstream.plan.components import NodeContext, Problem, Source
from millstream.plan.options import Columns, Duration, Expression, SchemaMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class BoundedMode(BaseModel):
    """Read up to an end that is fixed at the first start, then end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read what is there, then end."""
    until: Position = "latest"
    """Where the end is: `latest` (what is there at the first start), a time that has passed, or offsets by partition."""


class ContinuousMode(BaseModel):
    """Go on reading messages as they arrive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["continuous"]
    """Wait for more."""


class KafkaSource(KafkaComponent, Source):
    """Reads topics of a Kafka cluster, each message once. Messages of transactions are read when they are committed, and aborted ones
    never. New partitions, and new topics of a `pattern`, are picked up as they appear, from their first message.

    A message that does not fit is bad: `on_error` says what becomes of it; a dead letter holds topic, partition, offset, key and value.
    After every epoch the offsets are committed to the consumer group `millstream.<pipeline>.<source>`, so that tools which show lag
    work as usual. The pipeline itself goes by its checkpoint.
    """

    summary: ClassVar[str] = "Read messages of Kafka topics."
    example: ClassVar[str] = """
        orders:
          type: kafka
          bootstrap_servers: localhost:9092
          topic: shop.orders
          format: json
          schema: {id: int64, user: string, amount: "decimal(18,2)", at: timestamp}
          starting_offsets: earliest
    """
    adjustable: ClassVar[frozenset[str]] = frozenset(
        {"bootstrap_servers", "security", "schema_registry", "max_rows_per_epoch", "min_rows", "max_wait", "on_data_loss", "consumer"}
    )

    topic: str | None = None
    """The topic. One of `topic`, `topics` and `pattern` is needed."""
    topics: Columns = ()
    """Several topics with messages of one kind."""
    pattern: str | None = None
    """All topics whose whole name matches this regular expression, also those that come later."""
    format: Format = "avro"
    """How values are written: `avro` records, `json_schema` objects or `protobuf` messages, whose schemas are in a `schema_registry`;
    `json` objects, `csv` rows, `string` for text, `bytes` as they are. Protobuf is decoded in Python's workers, and the slowest of them."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type, for `json` and `csv`. Text and bytes have one column, `value`. With a registry it chooses columns; by default they
    are those of the subject's latest schema at the first start, which stays the schema that everything is read with."""
    schema_file: Path | None = None
    """A file with the schema, for `protobuf` without a registry: a `.proto` text, which may import others of its folder, or a compiled
    descriptor set. Values are bare messages then; `record` chooses the message."""
    options: FormatOptions = Field(default={})
    """Options of Spark's parser for `json` or `csv`, such as `delimiter` or `timestampFormat`."""
    key: SchemaMap | None = None
    """Columns of the message's key: column → type. Default: the key is not read."""
    key_format: Literal["string", "json", "bytes", "avro"] = "string"
    """How keys are written: as text (several columns are joined by `:`), as a JSON object, as bytes, or as Avro, whose schema is the
    registry's and need not be given."""
    envelope: Literal["debezium"] | None = None
    """`debezium`: values are Debezium's envelopes, in Avro or in JSON with or without their schema. The columns are those of the row,
    `_op` says what happened to it (`i`, `u`, `d`), `_seq` in which order. The messages without a value that follow deletes are left out."""
    tombstones: Literal["bad", "delete", "drop"] = "bad"
    """What a message without a value is: a bad row, a delete of its key (`_op` is `d`, the columns of `key` are set), or nothing."""
    operation_header: str | None = None
    """A header that says what happened to the row, such as `dbz.op`: `r` and `c` are inserts, `u` and `d` as they are. Rows then have
    `_op`; a message without the header is an insert."""
    starting_offsets: Position = "earliest"
    """Where to begin at the first start: `earliest`, `latest`, a time such as `2026-01-01T00:00:00Z`, or offsets by partition
    (`{0: 100, 1: latest}`; with several topics `{orders: {0: 100}}`). Partitions that are not named begin at their first message."""
    mode: Annotated[BoundedMode | ContinuousMode, Field(discriminator="type")] = ContinuousMode(type="continuous")
    """`{type: continuous}`, or `{type: bounded, until: latest}`."""
    include_metadata: bool = False
    """Whether rows have the columns `__kafka_topic`, `__kafka_partition`, `__kafka_offset`, `__kafka_timestamp`, `__kafka_headers` and
    `__kafka_key`."""
    trace_context: bool = False
    """Whether rows have a column `traceparent`: the header of that name, or null when it is missing or none of the W3C's. A Kafka sink
    writes the column as the header again; a `SELECT` in between has to name it."""
    filter: Expression | None = None
    """Keep the rows for which this is true. It may use all columns, those of `include_metadata` too."""
    max_rows_per_epoch: int | None = Field(default=None, ge=1)
    """The most messages that an epoch takes. Default: all that are there."""
    min_rows: int | None = Field(default=None, ge=1)
    """Wait for so many messages before an epoch begins, but no longer than `max_wait`."""
    max_wait: Duration = Duration("1m")
    """How long `min_rows` may wait."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """What happens when messages are gone that were not read yet, because Kafka's retention removed them or the topic was made anew:
    the pipeline stops, or goes on with what is left and counts the gap in offsets as `lost`."""
    consumer: FormatOptions = Field(default={})
    """Properties of Kafka's consumer, such as `fetch.max.bytes`."""

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, values: Any) -> Any:
        if isinstance(values, dict) and "data_format" in values and "format" not in values:
            return {("format" if name == "data_format" else name): value for name, value in values.items()}
        return values

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        format_ = "bytes" if self.schema_file else self.format
        return [*self.missing(), *self.registry_problems(format_, self.key_format, reading=True), *option_problems(self)]

    @property
    def bounded(self) -> bool:
        return isinstance(self.mode, BoundedMode)

    def output(self) -> pa.Schema | None:
        if file_problem(self):
            return None
        unknown = [is_registered(self, "value") and not self.columns, is_registered(self, "key") and not self.key]
        return None if any(unknown) else self._output(types.schema(self.key or {}), self.values())

    def discover(self, spark: SparkSession, context: NodeContext) -> pa.Schema:
        with self._asking(spark, context) as admin:
            topics = list(self._topics(admin))
        return self._found(topics, context)

    @property
    def previews(self) -> bool:
        return self.output() is None and self.schema_registry is not None

    def preview(self, context: NodeContext) -> pa.Schema | None:
        return self._found([self.topic] if self.topic else self.topics, context, LOOK_SECONDS) if not self.pattern else None

    def _found(self, topics: Sequence[str], context: NodeContext, seconds: float = 0) -> pa.Schema:
        key, value = types.schema(self.key or {}), self.values()
        if is_registered(self, "key") and not self.key:
            key = known_columns(self, topics, "key", context, seconds)
        if is_registered(self, "value") and not self.columns:
            value = known_columns(self, topics, "value", context, seconds)
        twice = [name for name in value.names if name in key.names]
        if twice:
            message = f"`{twice[0]}` is a column of the key and of the value"
            raise RunError(Diagnostic("MS105", message, help="choose columns with `key` or with `schema`"))
        return self._output(key, value)

    def _output(self, key: pa.Schema, value: pa.Schema) -> pa.Schema:
        changes = self.envelope or self.operation_header or self.tombstones == "delete"
        more = dict(CHANGES) if changes else {}
        more |= {TRACE: "string"} if self.trace_context else {}
        more |= METADATA if self.include_metadata else {}
        return pa.schema([*key, *value, *types.schema(more)])

    def learns(self, text: str, context: NodeContext) -> bool:
        return learn(self, [self.topic] if self.topic else self.topics, text, context)

    def key_columns(self, context: NodeContext) -> tuple[str, ...]:
        return key_of(self, context)

    def values(self) -> pa.Schema:
        """The columns of the value."""
        if self.schema_file is not None and not self.columns:
            return file_columns(self.schema_file, self.record or "")
        plain = {"value": "binary" if self.format == "bytes" else "string"}
        return types.schema(self.columns or plain)

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        with self._asking(spark, context) as admin:
            topics = self._topics(admin)
            require_same(admin, topics, context, self.on_data_loss)
            ends = pin_ends(context.storage, admin, topics, self.mode.until, context.name) if isinstance(self.mode, BoundedMode) else None
        options = {**spark_options(self), **pace(self), **start_options(self.starting_offsets, topics)}
        frame = spark.readStream.format("kafka").options(**options).load()
        return rows(self, before(frame, ends) if ends is not None else frame, context, list(topics))

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        with self._asking(spark, context) as admin:
            topics = self._topics(admin)
        options = {**spark_options(self), **start_options(self.starting_offsets, topics)}
        return rows(self, spark.read.format("kafka").options(**options).load(), context, list(topics))

    def find_bad(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> str:
        with self._asking(spark, context) as admin:
            topics = self._topics(admin)
        begin = {"startingOffsets": offsets.written(start)} if start else start_options(self.starting_offsets, topics)
        options = {**spark_options(self), **begin, "endingOffsets": offsets.written(end)}
        return first_bad(self, spark.read.format("kafka").options(**options).load(), context, list(topics))

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        ends = pinned_ends(context.storage) if context is not None and self.bounded else None
        return ends is not None and offsets.at_end(offset, ends)

    @property
    def may_lose(self) -> bool:
        return self.on_data_loss == "continue"

    def lost(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> int:
        with self._asking(spark, context) as admin:
            return offsets.gone(start, end, admin.offsets(self._topics(admin).values(), "earliest"))

    def parts(self, spark: SparkSession, context: NodeContext) -> int:
        with self._asking(spark, context) as admin:
            return sum(topic.partitions for topic in self._topics(admin).values())

    def waiting(self, offset: Any, latest: Any) -> int:
        return offsets.between(offset, latest)

    def reached(self, several: Sequence[Any]) -> Any:
        return offsets.least(several)

    def committed(self, spark: SparkSession, offset: Any, context: NodeContext) -> None:
        with opened(spark._jvm, self.client()) as admin:
            admin.commit(group_of(context), offsets.parsed(offset))

    @contextmanager
    def _asking(self, spark: SparkSession, context: NodeContext) -> Iterator[KafkaAdmin]:
        """A cluster that has never answered has a wrong address: that is no temporary failure."""
        try:
            with opened(spark._jvm, self.client()) as admin:
                yield admin
        except TransientError as error:
            raise error if known(context) else RunError(error.diagnostics) from None

    def _topics(self, admin: KafkaAdmin) -> dict[str, Topic]:
        if self.pattern is None:
            return admin.topics([self.topic] if self.topic else self.topics)
        return admin.topics(name for name in admin.names() if re.fullmatch(self.pattern, name))


def group_of(context: NodeContext) -> str:
    """The consumer group that shows how far the source has come."""
    return f"millstream.{context.pipeline}.{context.name}"
