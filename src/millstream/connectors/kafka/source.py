"""Kafka as a source: Spark's own connector reads, after the cluster was checked, and messages are decoded to rows.

Offsets are Spark's, in the checkpoint. Other facts are pinned next to them at the first start: the cluster and the topics (by their ids)
that the offsets belong to, and the end of a bounded source. The consumer group gets the committed offsets for monitoring; it is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from millstream.clients.kafka import KafkaAdmin, Topic, open_admin
from millstream.connectors.kafka.columns import CHANGES, METADATA
from millstream.connectors.kafka.failures import recognise_source
from millstream.connectors.kafka.read import offsets
from millstream.connectors.kafka.read.cluster_pin import require_same, was_reached
from millstream.connectors.kafka.read.decoding import before
from millstream.connectors.kafka.read.options import BoundedMode, KafkaSourceOptions
from millstream.connectors.kafka.read.positions import pin_ends, pinned_ends, start_options
from millstream.connectors.kafka.read.rows import first_bad, pace, rows, spark_options
from millstream.connectors.kafka.registry import LOOK_SECONDS
from millstream.connectors.kafka.schemas.protofile import file_columns
from millstream.connectors.kafka.schemas.registered import UnknownIds, is_registered, key_of, known_columns, learn
from millstream.connectors.kafka.values import file_problem, option_problems
from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.components import Dataset, NodeContext, Problem, Progress, Source, SourceRun
from millstream.plan.components.failure import Failure
from millstream.plan.tracing import HEADER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class KafkaSource(KafkaSourceOptions, Source):
    """Reads topics of a Kafka cluster, each message once. Messages of transactions are read when they are committed, aborted ones never.
    New partitions, and new topics of a `pattern`, are read as they appear, from their first message.

    A message that does not fit is a reject, and `on_error` applies; a dead letter contains topic, partition, offset, key and value. After
    every epoch the offsets are committed to the consumer group `millstream.<pipeline>.<source>`, so that tools that show lag work as usual.
    The pipeline itself uses its checkpoint.
    """

    readable_as_table: ClassVar[bool] = True
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

    @property
    def emits_changes(self) -> bool:
        return bool(self.envelope or self.operation_header or self.tombstones == "delete")

    def output(self) -> pa.Schema | None:
        if file_problem(self):
            return None
        unknown = [is_registered(self, "value") and not self.columns, is_registered(self, "key") and not self.key]
        return None if any(unknown) else self.columns_of(types.schema(self.key or {}), self.values())

    def columns_of(self, key: pa.Schema, value: pa.Schema) -> pa.Schema:
        more = dict(CHANGES) if self.emits_changes else {}
        more |= {HEADER: "string"} if self.trace_context else {}
        more |= METADATA if self.include_metadata else {}
        return pa.schema([*key, *value, *types.schema(more)])

    def values(self) -> pa.Schema:
        """The columns of the value."""
        if self.schema_file is not None and not self.columns:
            return file_columns(self.schema_file, self.record or "")
        plain = {"value": "binary" if self.format == "bytes" else "string"}
        return types.schema(self.columns or plain)

    @property
    def named_topics(self) -> list[str]:
        """The topics, unless there is a pattern."""
        return [self.topic] if self.topic else list(self.topics)

    def datasets(self) -> tuple[Dataset, ...]:
        return tuple(Dataset.of_topic(self.bootstrap_servers, topic) for topic in self.named_topics or [str(self.pattern)])

    def recognise(self, failure: str) -> Failure | None:
        return recognise_source(failure, self.bootstrap_servers)

    def open(self, context: NodeContext) -> KafkaSourceRun:
        return KafkaSourceRun(self, context)


class KafkaSourceRun(SourceRun):
    """Checks the cluster, and reads with Spark's connector."""

    def __init__(self, source: KafkaSource, context: NodeContext) -> None:
        super().__init__(context)
        self.source = source
        self._unknown = UnknownIds()

    def discover(self, spark: SparkSession) -> pa.Schema:
        with self._admin(spark) as admin:
            topics = list(self._topics(admin))
        return self._find_columns(topics)

    def preview(self) -> pa.Schema | None:
        if self.source.schema_registry is None or self.source.pattern:
            return None
        return self._find_columns(self.source.named_topics, LOOK_SECONDS)

    def _find_columns(self, topics: Sequence[str], seconds: float = 0) -> pa.Schema:
        source = self.source
        key, value = types.schema(source.key or {}), source.values()
        if is_registered(source, "key") and not source.key:
            key = known_columns(source, topics, "key", self.context, seconds)
        if is_registered(source, "value") and not source.columns:
            value = known_columns(source, topics, "value", self.context, seconds)
        twice = [name for name in value.names if name in key.names]
        if twice:
            message = f"`{twice[0]}` is a column of the key and of the value"
            raise RunError(Diagnostic("MS105", message, help="choose columns with `key` or with `schema`"))
        return source.columns_of(key, value)

    def learn(self, failure: str) -> bool:
        return learn(self.source, self.source.named_topics, failure, self.context, self._unknown)

    def key_columns(self) -> tuple[str, ...]:
        return key_of(self.source, self.context)

    def read(self, spark: SparkSession) -> DataFrame:
        source, context = self.source, self.context
        with self._admin(spark) as admin:
            topics = self._topics(admin)
            require_same(admin, topics, context, source.on_data_loss)
            mode = source.mode
            ends = pin_ends(context.storage, admin, topics, mode.until, context.name) if isinstance(mode, BoundedMode) else None
        options = {**spark_options(source, context), **pace(source), **start_options(source.starting_offsets, topics)}
        frame = spark.readStream.format("kafka").options(**options).load()
        return self._rows(before(frame, ends) if ends is not None else frame, topics)

    def table(self, spark: SparkSession) -> DataFrame:
        with self._admin(spark) as admin:
            topics = self._topics(admin)
        options = {**spark_options(self.source, self.context), **start_options(self.source.starting_offsets, topics)}
        untraced = replace(self.context, traced=False)
        return rows(self.source, spark.read.format("kafka").options(**options).load(), untraced, list(topics), self._unknown)

    def find_reject(self, spark: SparkSession, start: Any, end: Any) -> str:
        with self._admin(spark) as admin:
            topics = self._topics(admin)
        begin = {"startingOffsets": offsets.format_offset(start)} if start else start_options(self.source.starting_offsets, topics)
        options = {**spark_options(self.source, self.context), **begin, "endingOffsets": offsets.format_offset(end)}
        frame = spark.read.format("kafka").options(**options).load()
        return first_bad(self.source, frame, self.context, list(topics), self._unknown)

    def is_exhausted(self, offset: Any) -> bool:
        ends = pinned_ends(self.context.storage) if self.source.bounded else None
        return ends is not None and offsets.at_end(offset, ends)

    def rows_read(self, progress: Progress) -> int | None:
        """Spark's count, minus the messages after the end of a bounded source, if the offsets show it."""
        ends = pinned_ends(self.context.storage) if self.source.bounded else None
        if ends is None or progress.seen is None or not (beyond := offsets.beyond(progress.end, ends)):
            return progress.seen
        start = progress.start or offsets.first(progress.log)
        if start is None or offsets.between(start, progress.end) != progress.seen:
            return None  # the range contains transaction markers or compacted messages
        return progress.seen - beyond + offsets.beyond(start, ends)

    @property
    def may_lose(self) -> bool:
        return self.source.on_data_loss == "continue"

    def count_lost(self, spark: SparkSession, start: Any, end: Any) -> int:
        with self._admin(spark) as admin:
            return offsets.count_gone(start, end, admin.offsets(self._topics(admin).values(), "earliest"))

    def partitions(self, spark: SparkSession) -> int:
        with self._admin(spark) as admin:
            return sum(topic.partitions for topic in self._topics(admin).values())

    def rows_waiting(self, offset: Any, latest: Any) -> int:
        return offsets.between(offset, latest)

    def common_offset(self, several: Sequence[Any]) -> Any:
        return offsets.least(several)

    def on_commit(self, spark: SparkSession, offset: Any) -> None:
        with open_admin(spark._jvm, self.source.client()) as admin:
            admin.commit(group_of(self.context), offsets.parse_offset(offset))

    def _rows(self, frame: DataFrame, topics: Iterable[str]) -> DataFrame:
        return rows(self.source, frame, self.context, list(topics), self._unknown)

    def _admin(self, spark: SparkSession) -> AbstractContextManager[KafkaAdmin]:
        return self.source.open_admin(spark, was_reached(self.context))

    def _topics(self, admin: KafkaAdmin) -> dict[str, Topic]:
        if self.source.pattern is None:
            return admin.topics(self.source.named_topics)
        return admin.topics(name for name in admin.names() if re.fullmatch(self.source.pattern, name))


def group_of(context: NodeContext) -> str:
    """The consumer group that shows the progress of the source."""
    return f"millstream.{context.pipeline}.{context.name}"
