"""Kafka as a source: Spark's own connector reads, the cluster is asked first, and messages become rows on the way.

Offsets are Spark's, in the checkpoint. What the checkpoint cannot know by itself is pinned beside them at the first start: which
cluster and which topics (by their ids) the offsets belong to, and where a bounded source ends. The consumer group gets the committed
offsets for others to see; nothing is ever read from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from millstream.clients.kafka import KafkaAdmin, Topic, opened
from millstream.connectors.kafka.reading import offsets
from millstream.connectors.kafka.reading.decoding import CHANGES, METADATA, TRACE, before
from millstream.connectors.kafka.reading.identity import known, require_same
from millstream.connectors.kafka.reading.options import BoundedMode, KafkaSourceOptions
from millstream.connectors.kafka.reading.positions import pin_ends, pinned_ends, start_options
from millstream.connectors.kafka.reading.rows import first_bad, pace, rows, spark_options
from millstream.connectors.kafka.schemas.protofile import file_columns
from millstream.connectors.kafka.schemas.registered import is_registered, key_of, known_columns, learn
from millstream.connectors.kafka.schemas.registry import LOOK_SECONDS
from millstream.connectors.kafka.values import file_problem, option_problems
from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.components import NodeContext, Problem, Progress, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class KafkaSource(KafkaSourceOptions, Source):
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
        with self.asking(spark, known(context)) as admin:
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
        with self.asking(spark, known(context)) as admin:
            topics = self._topics(admin)
            require_same(admin, topics, context, self.on_data_loss)
            ends = pin_ends(context.storage, admin, topics, self.mode.until, context.name) if isinstance(self.mode, BoundedMode) else None
        options = {**spark_options(self), **pace(self), **start_options(self.starting_offsets, topics)}
        frame = spark.readStream.format("kafka").options(**options).load()
        return rows(self, before(frame, ends) if ends is not None else frame, context, list(topics))

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        with self.asking(spark, known(context)) as admin:
            topics = self._topics(admin)
        options = {**spark_options(self), **start_options(self.starting_offsets, topics)}
        return rows(self, spark.read.format("kafka").options(**options).load(), context, list(topics))

    def find_bad(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> str:
        with self.asking(spark, known(context)) as admin:
            topics = self._topics(admin)
        begin = {"startingOffsets": offsets.written(start)} if start else start_options(self.starting_offsets, topics)
        options = {**spark_options(self), **begin, "endingOffsets": offsets.written(end)}
        return first_bad(self, spark.read.format("kafka").options(**options).load(), context, list(topics))

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        ends = pinned_ends(context.storage) if context is not None and self.bounded else None
        return ends is not None and offsets.at_end(offset, ends)

    def rows_read(self, progress: Progress, context: NodeContext) -> int | None:
        """Spark's count; less what lies behind the end of a bounded source, as far as that can be told from offsets."""
        ends = pinned_ends(context.storage) if self.bounded else None
        if ends is None or progress.seen is None or not (beyond := offsets.beyond(progress.end, ends)):
            return progress.seen
        start = progress.start or offsets.first(progress.log)
        if start is None or offsets.between(start, progress.end) != progress.seen:
            return None  # between the offsets there are marks of transactions, or messages that were compacted away
        return progress.seen - beyond + offsets.beyond(start, ends)

    @property
    def may_lose(self) -> bool:
        return self.on_data_loss == "continue"

    def lost(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> int:
        with self.asking(spark, known(context)) as admin:
            return offsets.gone(start, end, admin.offsets(self._topics(admin).values(), "earliest"))

    def parts(self, spark: SparkSession, context: NodeContext) -> int:
        with self.asking(spark, known(context)) as admin:
            return sum(topic.partitions for topic in self._topics(admin).values())

    def waiting(self, offset: Any, latest: Any) -> int:
        return offsets.between(offset, latest)

    def reached(self, several: Sequence[Any]) -> Any:
        return offsets.least(several)

    def committed(self, spark: SparkSession, offset: Any, context: NodeContext) -> None:
        with opened(spark._jvm, self.client()) as admin:
            admin.commit(group_of(context), offsets.parsed(offset))

    def _topics(self, admin: KafkaAdmin) -> dict[str, Topic]:
        if self.pattern is None:
            return admin.topics([self.topic] if self.topic else self.topics)
        return admin.topics(name for name in admin.names() if re.fullmatch(self.pattern, name))


def group_of(context: NodeContext) -> str:
    """The consumer group that shows how far the source has come."""
    return f"millstream.{context.pipeline}.{context.name}"
