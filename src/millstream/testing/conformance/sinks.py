"""Sinks: rows are there when they are committed and not before, once, whatever was forgotten in between.

`_Crashing` does what the engine does at every start: it asks the ledger, skips an epoch that the target holds, and writes any other again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.plan.components.arrow_sink import ArrowSink
from millstream.plan.components.sink import Epoch
from millstream.testing.conformance.promises import Check
from millstream.testing.conformance.surroundings import NODE, batch_of, every_type, make_context, on_worker
from millstream.worker.plugin_runners import MESSAGES, SinkWriter
from millstream.worker.plugin_tasks import WriteTask


def checks(sink: ArrowSink, schema: pa.Schema | None, read: Callable[[], Sequence[Any]]) -> Iterator[Check]:
    columns = schema if schema is not None else every_type()
    exact = sink.best == "exactly_once"

    def empty() -> str:
        before, run = len(read()), _Crashing(sink, columns)
        run.write_epoch(0, [])
        return _counted(read, before, "an epoch without rows was committed")

    def types() -> str:
        before, run = len(read()), _Crashing(sink, columns)
        run.write_epoch(1, [0])
        return _counted(read, before + 3, "an epoch with three rows was committed")

    def visible() -> str:
        before, run = len(read()), _Crashing(sink, columns)
        messages = run.stage(2, [3, 6])
        wrong = _counted(read, before, "rows were staged and not committed")
        if not wrong:
            sink.commit(messages, run.epoch(2), run.context)
            wrong = _counted(read, before + 6, "an epoch of two parts was committed")
        return wrong

    def replay() -> str:
        """The process dies after the commit, before the checkpoint has noted it."""
        before = len(read())
        _Crashing(sink, columns).write_epoch(3, [9])
        _Crashing(sink, columns).write_epoch(3, [9])
        return _counted(read, before + 3, "an epoch of three rows was committed and then repeated") if exact else ""

    def stopped() -> str:
        before, first = len(read()), _Crashing(sink, columns)
        sink.abort(first.stage(4, [12]), first.epoch(4), first.context)
        wrong = _counted(read, before, "an epoch was staged and aborted")
        first.stage(4, [12])  # a kill: nobody aborts
        _Crashing(sink, columns).write_epoch(4, [12])
        return wrong or _counted(read, before + 3, "an epoch was staged, aborted, staged, forgotten, and then committed")

    def own_ledger() -> str:
        run = _Crashing(sink, columns)
        run.write_epoch(5, [15])
        held = sink.held(run.epoch(5), run.context) if sink.holds_ledger else None
        if sink.holds_ledger and (held is None or (held.epoch, held.digest) != (5, run.epoch(5).digest)):
            return f"`held` says {held} after epoch 5 was committed"
        other = sink.held(Epoch("another query", "another sink", 5, "digest-5", ""), run.context) if sink.holds_ledger else None
        return f"`held` says {other} for a sink that has written nothing: keep it by `epoch.query` and `epoch.sink`" if other else ""

    yield Check("empty epoch", empty)
    yield Check("columns and types", types)
    yield Check("visible only after the commit", visible)
    yield Check("replay of an epoch", replay)
    yield Check("stop in the middle", stopped)
    yield Check("ledger", own_ledger)


@dataclass
class _Crashing:
    """One life of the engine: it knows what the target says, and nothing of its last life."""

    sink: ArrowSink
    schema: pa.Schema

    def __post_init__(self) -> None:
        self.context = make_context()
        self.sink = self.sink.model_copy()

    def epoch(self, number: int) -> Epoch:
        return Epoch("query größe", NODE, number, f"digest-{number}", "")

    def stage(self, number: int, parts: Sequence[int]) -> tuple[Any, ...]:
        """Write parts of three rows each, on their workers."""
        epoch, messages = self.epoch(number), []
        for first in parts:
            task = WriteTask(NODE, self.schema, query=epoch.query, epoch=epoch.number, digest=epoch.digest)
            writer = SinkWriter(on_worker(self.sink, "write").write, task, str(self.context.directory))
            for came in writer.run([batch_of(self.schema, first)]):
                assert came.schema.equals(MESSAGES)
                messages += [pickle.loads(message) for message in came.column("message").to_pylist()]
        return tuple(messages)

    def write_epoch(self, number: int, parts: Sequence[int]) -> None:
        held = self.sink.held(self.epoch(number), self.context) if self.sink.holds_ledger else None
        if held is None or held.epoch < number:
            self.sink.commit(self.stage(number, parts), self.epoch(number), self.context)


def _counted(read: Callable[[], Sequence[Any]], wanted: int, when: str) -> str:
    found = len(read())
    return "" if found == wanted else f"{when}, and readers see {found} rows instead of {wanted}"
