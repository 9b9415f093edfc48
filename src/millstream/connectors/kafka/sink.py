"""A Kafka topic as a sink, exactly once per epoch for readers of committed messages.

A small epoch:
stage:  the rows become messages, and come to the driver with the job that computes them.
commit: the driver writes them in one transaction, which holds the epoch's marker too, with a producer that stays open for the run.

A large epoch:
stage:  the rows become messages, each with its lane, and are kept: in Spark's shuffle when computing again gives the same rows, else as
        files under the checkpoint, so that they are not computed again.
commit: a plan of the epoch is put once; then each lane writes its messages in one transaction, which holds the lane's marker too.

If killed before the plan is put, the staged rows are garbage. If killed after it, the lanes without the epoch's marker write the same
rows again (`worker/lanes.py` has the proof). No transaction is open across a restart, so none can time out and lose rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.connectors.kafka.failures import recognise_outage, refusal_help
from millstream.connectors.kafka.registry import What
from millstream.connectors.kafka.schemas.registration import RegisteredSchema, Registration
from millstream.connectors.kafka.values import sink_problems
from millstream.connectors.kafka.write import properties
from millstream.connectors.kafka.write.claim import SinkLanes
from millstream.connectors.kafka.write.delivery import Delivery, Work
from millstream.connectors.kafka.write.encoding import Encoding, encode, message_of
from millstream.connectors.kafka.write.epoch_log import EpochLog
from millstream.connectors.kafka.write.message_size import fail_on_large, size_of, with_size_rejects
from millstream.connectors.kafka.write.options import ColumnHeader, KafkaSinkOptions
from millstream.connectors.kafka.write.publisher import Claim
from millstream.connectors.kafka.write.target import NewTopic, TopicTarget, find, require_client, was_reached
from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import Dataset, Epoch, Guarantee, LedgerEntry, NodeContext, Problem, Sink, SinkRun, Staged
from millstream.plan.components.failure import Failure
from millstream.sql.catalyst.small_rows import SmallRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class KafkaSink(KafkaSinkOptions, Sink):
    """Writes rows as messages of a Kafka topic. By default every row arrives exactly once for readers with
    `isolation.level=read_committed`, even if a worker, the driver or a broker dies; there is no time limit for the restart.

    A small epoch is one transaction, together with a marker with the epoch's number. The rows of a large one are divided among lanes, by
    their key, and each lane writes in one transaction: such an epoch is atomic per lane. The messages of a key keep their order. The
    markers are the offsets of the consumer group `millstream.<pipeline>.<sink>.<query>`, that of small epochs of the group with `.small`
    behind: do not change them. A run claims the lanes when it starts: of two copies of a pipeline the older one stops.
    A key goes to the partition that Java's clients would choose. When the topic gets more partitions, they are used from the next start on
    (or when the client refreshes its metadata, within minutes), and keys move: their order holds before and after the change.
    """

    summary: ClassVar[str] = "Write messages to a Kafka topic, exactly once."
    carries_traces: ClassVar[bool] = True
    commit_method: ClassVar[str] = (
        "one transaction for a small epoch, one per lane for others, with the epoch's number and digest as an offset of a consumer group; "
        "what shows them is not written again. Readers need `read_committed`; with `guarantee: at_least_once` Spark's own writer is used"
    )
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
    def validates_rows(self) -> bool:
        return True

    @property
    def promise(self) -> Guarantee:
        return self.guarantee

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema = next(iter(inputs.values()), None)
        return [*self.missing(), *self.registry_problems(self.format, self.key_format, reading=False), *sink_problems(self, schema)]

    def recognise(self, failure: str) -> Failure | None:
        return recognise_outage(failure)

    def refusal_help(self, code: str) -> str:
        return refusal_help(code)

    def takes_updates(self, key: tuple[str, ...]) -> bool:
        """A tombstone removes what the message's key says."""
        return self.deletes != "tombstone" or not self.key or set(self.key) == set(key)

    @property
    def updates_help(self) -> str:
        return "use the key of the changes as `key`, or `deletes: row` to write the changes themselves"

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_topic(self.bootstrap_servers, self.topic),)

    def open(self, context: NodeContext) -> KafkaSinkRun:
        return KafkaSinkRun(self, context)


@dataclass(frozen=True, slots=True)
class QueryDelivery:
    """What a run keeps of one query from epoch to epoch."""

    log: EpochLog
    small: SmallRows
    claim: Claim = field(default_factory=Claim)


class KafkaSinkRun(SinkRun[Work | None]):
    """Holds the topic's properties from the start, the registered schemas, and what each query has claimed."""

    def __init__(self, sink: KafkaSink, context: NodeContext) -> None:
        super().__init__(context)
        self.sink = sink
        self._target: TopicTarget | None = None
        self._schemas: dict[What, RegisteredSchema] = {}
        self._queries: dict[str, QueryDelivery] = {}
        """Two queries can share a dead-letter sink, and each has its own lanes."""

    def prepare(self, spark: SparkSession) -> None:
        require_client()
        create = self.sink.create if isinstance(self.sink.create, NewTopic) else NewTopic() if self.sink.create else None
        with self.sink.open_admin(spark, was_reached(self.context)) as admin:
            self._target = find(admin, properties.admin_properties(self.sink), self.sink.topic, create, self.context)

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        if self.sink.guarantee == "at_least_once":
            return None
        assert spark is not None
        self._queries.pop(epoch.query, None)  # a new start knows nothing of what an earlier one has claimed
        return self._delivery(epoch).held_epoch(self._lanes(spark))

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """The entry in the log of this topic. The lanes' markers are read when they are claimed, before the first epoch."""
        done = self._new_log(epoch).done()
        return LedgerEntry(done.epoch, done.digest) if done.epoch >= 0 else None

    def has_begun(self, epoch: Epoch) -> bool:
        return self.sink.guarantee == "exactly_once" and self._new_log(epoch).plan(epoch.number) is not None

    def with_rejects(self, frame: DataFrame) -> DataFrame:
        return with_size_rejects(frame, message_of(frame, self._encoding()), self._limit)

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[Work | None]:
        if self.sink.guarantee == "at_least_once":
            self._messages(frame).drop(SEQUENCE).write.format("kafka").options(**properties.spark_options(self.sink)).save()
            return Staged(None, None)
        return self._delivery(epoch).stage(frame, self._lanes(frame.sparkSession))

    def commit(self, staged: Staged[Work | None], epoch: Epoch) -> None:
        if staged.work is not None:
            self._delivery(epoch).commit(staged.work)

    def abort(self, staged: Staged[Work | None], epoch: Epoch) -> None:
        if staged.work is not None:
            self._delivery(epoch).abort(staged.work)

    def stream(self, frame: DataFrame) -> DataStreamWriter:
        messages = fail_on_large(encode(frame, self._encoding()), self.context.name, self._limit).drop(SEQUENCE)
        return messages.writeStream.format("kafka").options(**properties.spark_options(self.sink))

    def close(self) -> None:
        for kept in self._queries.values():
            if kept.claim.at and not kept.claim.attempting:
                kept.log.record_rest(kept.claim.run)
        self._queries.clear()  # its producers end with it

    def _delivery(self, epoch: Epoch) -> Delivery:
        group = f"millstream.{self.context.pipeline}.{epoch.sink}.{epoch.query}"
        asking, writing = properties.admin_properties(self.sink), properties.producer_properties(self.sink, self._limit)
        if epoch.query not in self._queries:
            self._queries[epoch.query] = QueryDelivery(self._new_log(epoch), SmallRows(self._sized_messages))
        kept = self._queries[epoch.query]
        lanes = SinkLanes(epoch, self.sink.topic, self._topic.partitions, group, kept.log, writing, kept.claim)
        return Delivery(lanes, asking, kept.small)

    def _sized_messages(self, frame: DataFrame) -> tuple[DataFrame, Column]:
        messages = self._messages(frame)
        return messages, size_of(messages)

    def _messages(self, frame: DataFrame) -> DataFrame:
        messages = encode(frame, self._encoding())
        return messages if self.context.isolate else fail_on_large(messages, self.context.name, self._limit)

    def _new_log(self, epoch: Epoch) -> EpochLog:
        return EpochLog(self.context.storage, f"{epoch.query}/{self.sink.topic}")

    def _lanes(self, spark: SparkSession) -> int:
        return self.sink.lanes or spark.sparkContext.defaultParallelism

    def _encoding(self) -> Encoding:
        sink, key = self.sink, self.sink.key or self.context.primary_key
        static = {name: value for name, value in sink.headers.items() if isinstance(value, str)}
        dynamic = {name: value.column for name, value in sink.headers.items() if isinstance(value, ColumnHeader)}
        registration = Registration(sink, self.context.name, self.context.storage, self._schemas, key)
        plain = (sink.format, sink.value, key, sink.key_format, sink.options, static, dynamic, sink.deletes)
        return Encoding(self.context.name, *plain, registration)

    @property
    def _topic(self) -> TopicTarget:
        assert self._target is not None, "the topic is found by `prepare`"
        return self._target

    @property
    def _limit(self) -> int:
        """The most bytes of a message."""
        own = self.sink.max_message_size
        return min(own.bytes, self._topic.limit) if own else self._topic.limit
