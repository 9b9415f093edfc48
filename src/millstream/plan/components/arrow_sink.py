"""Base class for sinks that write Arrow batches on Spark's workers and commit an epoch on the driver.

`write` stages the rows of one part where no reader sees them, and returns a message: plain data that says what was staged. `commit` gets
the messages of an epoch and makes all of them visible, once. A sink whose target stores the epoch that it holds implements `held`: then an
epoch is there exactly once, whatever dies in between. Without it the engine keeps the ledger in the pipeline's store, after the commit.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from millstream.errors import Diagnostic, RunError
from millstream.jvm.plugin_frames import map_batches, schema_of
from millstream.plan.components.calls import driver_call
from millstream.plan.components.context import NodeContext
from millstream.plan.components.shipping import for_workers
from millstream.plan.components.sink import Epoch, LedgerEntry, Sink, SinkRun, Staged, rolled_back
from millstream.worker.plugin_runners import MESSAGES, SinkWriter
from millstream.worker.plugin_tasks import WriteTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ArrowSink(Sink):
    """A sink whose rows are Arrow batches: it implements `write` and `commit`, and `held` to be exactly once."""

    commit_method: ClassVar[str] = "`commit` publishes what `write` staged"
    states_guarantee: ClassVar[bool] = False
    """Whether the plugin says itself what `best` is; else it follows from `held`."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        keeps = cls.held is not ArrowSink.held
        cls.holds_ledger = keeps
        cls.states_guarantee = cls.states_guarantee or "best" in vars(cls)
        if not cls.states_guarantee:
            cls.best = "exactly_once" if keeps else "at_least_once"

    def write(self, batches: Iterator[pa.RecordBatch], task: WriteTask) -> Any:
        """Stage the rows of one part, and return a message for `commit`. Called on workers, for parts with at least one row; Spark may
        run a part twice, and the message of one attempt counts.
        """
        raise NotImplementedError

    def commit(self, messages: Sequence[Any], epoch: Epoch, context: NodeContext) -> None:
        """Publish what the messages name, and with it the epoch's number and digest under its query and sink if the target can store
        them. Called on the driver, also with no messages. The same epoch may be committed again if this was interrupted.
        """
        raise NotImplementedError

    def abort(self, messages: Sequence[Any], epoch: Epoch, context: NodeContext) -> None:
        """Remove what was staged for an epoch that is not committed now. It may be staged again."""

    def held(self, epoch: Epoch, context: NodeContext) -> LedgerEntry | None:
        """The last epoch of `epoch.query` and `epoch.sink` that the target holds; None: none."""
        return None

    def close(self, context: NodeContext) -> None:
        """Called at the end of the run."""

    @property
    def recalls_without_spark(self) -> bool:
        return self.holds_ledger

    def open(self, context: NodeContext) -> ArrowSinkRun:
        return LedgerSinkRun(self, context) if self.holds_ledger else ArrowSinkRun(self, context)


@dataclass(frozen=True, slots=True)
class Messages:
    """What the parts of a staged epoch have returned."""

    messages: tuple[Any, ...]


class ArrowSinkRun(SinkRun[Messages]):
    """Sends the sink to the workers, and collects their messages."""

    def __init__(self, sink: ArrowSink, context: NodeContext) -> None:
        super().__init__(context)
        self.sink = sink

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[Messages]:
        context = self.context
        task = WriteTask(context.name, schema_of(frame), context.metrics, query=epoch.query, epoch=epoch.number, digest=epoch.digest)
        writer = SinkWriter(for_workers(self.sink, "write").write, task, str(context.directory.resolve()), context.hidden)
        came = map_batches(frame, writer.run, MESSAGES, type(self.sink), context.directory).collect()
        with driver_call(context, "the unpickling of what `write` returned"):
            messages = tuple(pickle.loads(bytes(part.message)) for part in came)
        return Staged(sum(part.rows for part in came), Messages(messages), bytes=sum(part.bytes for part in came))

    def commit(self, staged: Staged[Messages], epoch: Epoch) -> None:
        with driver_call(self.context, "`commit`"):
            self.sink.commit(staged.work.messages, epoch, self.context)

    def abort(self, staged: Staged[Messages], epoch: Epoch) -> None:
        with driver_call(self.context, "`abort`"):
            self.sink.abort(staged.work.messages, epoch, self.context)

    def close(self) -> None:
        self.sink.close(self.context)


class LedgerSinkRun(ArrowSinkRun):
    """The target stores the epoch that it holds."""

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        with driver_call(self.context, "`held`"):
            found: object = self.sink.held(epoch, self.context)
        if found is None or isinstance(found, LedgerEntry):
            return found
        message = f"`{self.context.name}`: `held` returned {type(found).__name__}, and not a `LedgerEntry`"
        help_ = "return `millstream.LedgerEntry(epoch, digest)`, or None"
        raise RunError(Diagnostic("MS206", message, help=help_, node=self.context.name))

    def commit(self, staged: Staged[Messages], epoch: Epoch) -> None:
        """Nothing is written to a target that was restored or emptied during the run: it lacks epochs, and would never get them."""
        if epoch.before is not None:
            now = self.ledger(None, epoch)
            if now is None or now.epoch < epoch.before.epoch:
                with suppress(Exception):  # the rollback is what has to be told
                    self.abort(staged, epoch)
                raise RunError(rolled_back(epoch))
        super().commit(staged, epoch)

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        return self.ledger(spark, epoch)
