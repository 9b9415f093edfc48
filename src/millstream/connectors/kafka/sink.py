"""A Kafka topic as a sink, exactly once per epoch for readers of committed messages.

stage:  the rows become messages and are written under the checkpoint, each with its lane: nobody computes them a second time.
commit: a plan of the epoch is put once; then each lane writes its messages in one transaction, which holds the lane's marker too.

Killed before the plan is put, the files are rubbish. Killed after it, the same files are written again by those lanes that do not show
the epoch's marker (`lanes.py` has the proof). No transaction is open across a restart, so none can time out and lose rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.kafka import KafkaAdmin, opened
from millstream.clients.writing import write
from millstream.connectors.kafka.connection import KafkaComponent
from millstream.connectors.kafka.encoding import Encoding, encoded, in_lanes
from millstream.connectors.kafka.lanes import Job
from millstream.connectors.kafka.logbook import Logbook, Plan
from millstream.connectors.kafka.parsing import Format
from millstream.connectors.kafka.publishing import publish
from millstream.connectors.kafka.registering import Registration
from millstream.connectors.kafka.target import NewTopic, Target, find, known, markers, require_client
from millstream.connectors.kafka.values import FormatOptions, sink_problems
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.plan.components import Epoch, Guarantee, LedgerEntry, NodeContext, Problem, Sink, Staged
from millstream.plan.options import Columns, Duration, Size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_DAY = 86_400
_PLAIN = {"compression": "lz4", "parquet.enable.dictionary": "false"}


class ColumnHeader(BaseModel):
    """A header whose value is a column's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    """The column. A null makes no header."""


class KafkaSink(KafkaComponent, Sink):
    """Writes rows as messages of a Kafka topic. By default every row arrives exactly once for readers with
    `isolation.level=read_committed`, whatever dies in between: worker, driver or broker; there is no time limit for coming back.

    The rows of an epoch are divided among lanes, by their key; each lane writes in one transaction, together with a marker that says
    which epoch it was. An epoch is atomic per lane, and the messages of a key keep their order. The markers are the offsets of the
    consumer group `millstream.<pipeline>.<sink>.<query>`: leave it alone.
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
            "too_large",
            "transaction_timeout",
            "producer",
        }
    )

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
    delivery: Guarantee = Field(default="exactly_once", alias="guarantee")
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
    """The most bytes of a message. Default: what the topic takes, and never more than that."""
    too_large: Literal["fail", "drop"] = "fail"
    """What becomes of a larger one: the pipeline stops and says which, or goes on without it."""
    transaction_timeout: Duration = Duration("10m")
    """The longest that a lane may take for an epoch; the brokers' `transaction.max.timeout.ms` is the upper limit."""
    producer: FormatOptions = Field(default={})
    """Properties of the producer (librdkafka's), such as `request.timeout.ms`."""

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema = next(iter(inputs.values()), None)
        return [*self.missing(), *self.registry_problems(self.format, self.key_format, reading=False), *sink_problems(self, schema)]

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        require_client()
        create = self.create if isinstance(self.create, NewTopic) else NewTopic() if self.create else None
        with self._asking(spark, context) as admin:
            context.memory["target"] = find(admin, self._quiet(), self.topic, create, context)

    def ledger(self, spark: SparkSession, epoch: Epoch) -> LedgerEntry | None:
        """The markers say what must not be written again; only the logbook knows that no lane is missing."""
        if self.delivery == "at_least_once":
            return None
        done, target = self._logbook(epoch).done(), self._target(epoch)
        held = markers(self._quiet(), self._group(epoch), self.topic, target.partitions)
        number, digest = max(held.values(), default=(-1, ""))
        if number > epoch.number or (number == epoch.number and digest != epoch.digest):
            return LedgerEntry(number, digest)
        return LedgerEntry(done.epoch, done.digest) if done.epoch >= 0 else None

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        spark, target = frame.sparkSession, self._target(epoch)
        if self.delivery == "at_least_once":
            return self._write_natively(encoded(frame, self._encoding(epoch)))
        logbook = self._logbook(epoch)
        plan = logbook.plan(epoch.number)
        if plan is not None:
            _require_digest(plan, epoch)
            frame.write.format("noop").mode("append").save()  # a query with state must see every epoch
            return Staged(plan.rows, (spark, plan, True))
        lanes = min(self.lanes or spark.sparkContext.defaultParallelism, target.partitions)
        folder = f"{epoch.number}-{uuid.uuid4().hex[:8]}"
        messages = in_lanes(encoded(frame, self._encoding(epoch)), lanes)
        written = write(messages, f"{logbook.storage.url}/{folder}", "parquet", (), _PLAIN, None)
        return Staged(written.rows, (spark, Plan(folder, lanes, written.rows, epoch.digest), False))

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        if self.delivery == "at_least_once":
            return
        spark, plan, repeated = staged.payload
        logbook = self._logbook(epoch)
        plan = logbook.put_once(epoch.number, plan)
        _require_digest(plan, epoch)
        marked = self._publish(spark, logbook, plan, epoch, repeated) if plan.rows else []
        logbook.finish(epoch.number, epoch.digest, marked)

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        if staged.payload and not staged.payload[2]:
            self._logbook(epoch).storage.delete(staged.payload[1].folder)

    def _publish(self, spark: SparkSession, logbook: Logbook, plan: Plan, epoch: Epoch, repeated: bool) -> list[int]:
        messages = spark.read.parquet(f"{logbook.storage.url}/{plan.folder}")
        done = logbook.done()
        # an absent marker is no riddle before the first attempt; but one that is young has not expired: somebody removed it
        required = frozenset(done.expected()) if repeated else done.younger(_DAY)
        job = Job(self._producer(self._limit(epoch)), self._group(epoch), self.topic, epoch.number, epoch.digest, done.expected(), required)
        return publish(messages, plan.lanes, job, epoch)

    def _write_natively(self, messages: DataFrame) -> Staged:
        messages.write.format("kafka").options(**self._native_options()).save()
        return Staged(None)

    def _native_options(self) -> dict[str, str]:
        own = {"compression.type": self.compression, "linger.ms": str(self.linger.milliseconds), "batch.size": str(self.batch_size.bytes)}
        options = {f"kafka.{name}": value for name, value in {**own, "acks": "all", **self.client()}.items()}
        return {**options, "topic": self.topic, "includeHeaders": "true"}

    def stream(self, frame: DataFrame, context: NodeContext) -> DataStreamWriter:
        messages = encoded(frame, self._encoding(Epoch("", context.name, 0, "", "", context)))
        return messages.writeStream.format("kafka").options(**self._native_options())

    def _encoding(self, epoch: Epoch) -> Encoding:
        key = self.key or (epoch.context.primary_key if epoch.context else ())
        static = {name: value for name, value in self.headers.items() if isinstance(value, str)}
        dynamic = {name: value.column for name, value in self.headers.items() if isinstance(value, ColumnHeader)}
        limit, registration = (
            self._limit(epoch),
            Registration(self, epoch.sink, epoch.context.storage, epoch.context.memory, key) if epoch.context else None,
        )
        return Encoding(
            epoch.sink,
            self.format,
            self.value,
            key,
            self.key_format,
            self.options,
            static,
            dynamic,
            self.deletes,
            limit,
            self.too_large,
            registration,
        )

    def _limit(self, epoch: Epoch) -> int:
        topic = self._target(epoch).limit
        return min(self.max_message_size.bytes, topic) if self.max_message_size else topic

    def _producer(self, limit: int = 1_000_000) -> dict[str, Any]:
        return {
            **self._quiet(),
            "partitioner": "murmur2_random",  # what Java's clients do
            "acks": "all",
            "compression.type": self.compression,
            "linger.ms": self.linger.milliseconds,
            "batch.size": self.batch_size.bytes,
            "batch.num.messages": 100_000,
            "message.max.bytes": max(limit, 1_000_000) + 65_536,  # what is too large was found before
            "transaction.timeout.ms": self.transaction_timeout.milliseconds,
            "delivery.report.only.error": True,
            **self.producer,
        }

    def _quiet(self) -> dict[str, str]:
        return {**self.native_client(), "log_level": "0"}

    def _group(self, epoch: Epoch) -> str:
        pipeline = epoch.context.pipeline if epoch.context else ""
        return f"millstream.{pipeline}.{epoch.sink}.{epoch.query}"

    def _logbook(self, epoch: Epoch) -> Logbook:
        assert epoch.context is not None
        return Logbook(epoch.context.storage, f"{epoch.query}/{self.topic}")

    def _target(self, epoch: Epoch) -> Target:
        assert epoch.context is not None
        target: Target = epoch.context.memory["target"]
        return target

    @contextmanager
    def _asking(self, spark: SparkSession, context: NodeContext) -> Iterator[KafkaAdmin]:
        """A cluster that has never answered has a wrong address: that is no temporary failure."""
        try:
            with opened(spark._jvm, self.client()) as admin:
                yield admin
        except TransientError as error:
            raise error if known(context) else RunError(error.diagnostics) from None


def _require_digest(plan: Plan, epoch: Epoch) -> None:
    if plan.digest != epoch.digest:
        message = f"sink `{epoch.sink}` has begun epoch {epoch.number} of another history"
        raise RunError(Diagnostic("MS055", message, detail="nothing was written", help="restore the checkpoint as a whole"))
