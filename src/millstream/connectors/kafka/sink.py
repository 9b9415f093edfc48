"""A Kafka topic as a sink, exactly once per epoch for readers of committed messages.

stage:  the rows become messages, each with its lane, and wait: in Spark's shuffle when they would come out the same once more, else as
        files under the checkpoint, so that nobody computes them a second time.
commit: a plan of the epoch is put once; then each lane writes its messages in one transaction, which holds the lane's marker too.

Killed before the plan is put, what waits is rubbish. Killed after it, the same rows are written again by those lanes that do not show
the epoch's marker (`lanes.py` has the proof). No transaction is open across a restart, so none can time out and lose rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.connectors.kafka.schemas.registering import Registration
from millstream.connectors.kafka.values import sink_problems
from millstream.connectors.kafka.writing import properties
from millstream.connectors.kafka.writing.delivery import Delivery
from millstream.connectors.kafka.writing.encoding import Encoding, encoded, message_of
from millstream.connectors.kafka.writing.fitting import required, told_apart
from millstream.connectors.kafka.writing.logbook import Logbook
from millstream.connectors.kafka.writing.options import ColumnHeader, KafkaSinkOptions
from millstream.connectors.kafka.writing.target import NewTopic, find, known, require_client, target_of
from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import Epoch, Guarantee, LedgerEntry, NodeContext, Problem, Sink, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class KafkaSink(KafkaSinkOptions, Sink):
    """Writes rows as messages of a Kafka topic. By default every row arrives exactly once for readers with
    `isolation.level=read_committed`, whatever dies in between: worker, driver or broker; there is no time limit for coming back.

    The rows of an epoch are divided among lanes, by their key; each lane writes in one transaction, together with a marker that says
    which epoch it was. An epoch is atomic per lane, and the messages of a key keep their order. The markers are the offsets of the
    consumer group `millstream.<pipeline>.<sink>.<query>`: leave it alone. A run claims the lanes when it starts: of two copies of a
    pipeline the older one ends.

    A key goes to the partition that Java's clients would choose. When the topic gets more partitions, they are used from the next start
    on (or when the client looks again, within minutes), and keys move: their order holds on either side of the change.
    """

    summary: ClassVar[str] = "Write messages to a Kafka topic, exactly once."
    example: ClassVar[str] = """
        alerts:
          type: kafka
          from: orders
          bootstrap_servers: localhost:9092
          topic: alerts
          format: json
          key: [id]
          create: {partitions: 4, config: {cleanup.policy: compact}}
    """
    adjustable: ClassVar[frozenset[str]] = frozenset(
        {
            "bootstrap_servers",
            "security",
            "schema_registry",
            "create",
            "lanes",
            "compression",
            "linger",
            "batch_size",
            "max_message_size",
            "transaction_timeout",
            "producer",
        }
    )

    @property
    def judges(self) -> bool:
        return True

    @property
    def promise(self) -> Guarantee:
        return self.guarantee

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema = next(iter(inputs.values()), None)
        return [*self.missing(), *self.registry_problems(self.format, self.key_format, reading=False), *sink_problems(self, schema)]

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        require_client()
        create = self.create if isinstance(self.create, NewTopic) else NewTopic() if self.create else None
        with self.asking(spark, known(context)) as admin:
            context.memory["target"] = find(admin, properties.asking(self), self.topic, create, context)

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        if self.guarantee == "at_least_once":
            return None
        assert spark is not None
        return self._delivery(epoch).held(self._lanes(spark))

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """What the logbook of this topic says. Whether the lanes agree is asked when they are claimed, before the first epoch."""
        done = self._logbook(epoch).done()
        return LedgerEntry(done.epoch, done.digest) if done.epoch >= 0 else None

    def has_begun(self, epoch: Epoch) -> bool:
        return self.guarantee == "exactly_once" and self._logbook(epoch).plan(epoch.number) is not None

    def judged(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        return told_apart(frame, message_of(frame, self._encoding(context)), self._limit(context))

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        assert epoch.context is not None
        messages = encoded(frame, self._encoding(epoch.context))
        if not epoch.context.isolate:
            messages = required(messages, epoch.sink, self._limit(epoch.context))
        if self.guarantee == "at_least_once":
            messages.drop(SEQUENCE).write.format("kafka").options(**properties.spark_options(self)).save()
            return Staged(None)
        return self._delivery(epoch).stage(messages, self._lanes(frame.sparkSession))

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        if staged.payload is not None:
            self._delivery(epoch).commit(staged.payload)

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        if staged.payload is not None:
            self._delivery(epoch).abort(staged.payload)

    def _delivery(self, epoch: Epoch) -> Delivery:
        assert epoch.context is not None
        group = f"millstream.{epoch.context.pipeline}.{epoch.sink}.{epoch.query}"
        logbook = self._logbook(epoch)
        partitions, limit = target_of(epoch.context).partitions, self._limit(epoch.context)
        asking, writing = properties.asking(self), properties.writing(self, limit)
        return Delivery(epoch, self.topic, partitions, group, logbook, asking, writing, epoch.context.memory)

    def _logbook(self, epoch: Epoch) -> Logbook:
        assert epoch.context is not None
        return Logbook(epoch.context.storage, f"{epoch.query}/{self.topic}")

    def stream(self, frame: DataFrame, context: NodeContext) -> DataStreamWriter:
        messages = required(encoded(frame, self._encoding(context)), context.name, self._limit(context)).drop(SEQUENCE)
        return messages.writeStream.format("kafka").options(**properties.spark_options(self))

    def _lanes(self, spark: SparkSession) -> int:
        return self.lanes or spark.sparkContext.defaultParallelism

    def _encoding(self, context: NodeContext) -> Encoding:
        key = self.key or context.primary_key
        static = {name: value for name, value in self.headers.items() if isinstance(value, str)}
        dynamic = {name: value.column for name, value in self.headers.items() if isinstance(value, ColumnHeader)}
        registration = Registration(self, context.name, context.storage, context.memory, key)
        plain = (self.format, self.value, key, self.key_format, self.options, static, dynamic, self.deletes)
        return Encoding(context.name, *plain, registration)

    def _limit(self, context: NodeContext) -> int:
        topic = target_of(context).limit
        return min(self.max_message_size.bytes, topic) if self.max_message_size else topic
