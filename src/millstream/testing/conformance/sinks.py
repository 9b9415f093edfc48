"""Sinks: rows are there when they are committed and not before, once, whatever was forgotten in between.

`_Crashing` does what the engine does at every start: it asks the ledger, skips an epoch that the target holds, and writes any other again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.plan.components.arrow_sink import ArrowSink
from millstream.plan.components.sink import Epoch
from millstream.testing.conformance import kills
from millstream.testing.conformance.promises import PATIENCE, Check
from millstream.testing.conformance.surroundings import NODE, batch_of, every_type, make_context, on_worker
from millstream.worker.plugin_runners import MESSAGES, SinkWriter
from millstream.worker.plugin_tasks import WriteTask


def checks(sink: ArrowSink, schema: pa.Schema | None, read: Callable[[], Sequence[Any]], folder: Path) -> Iterator[Check]:
    columns = schema if schema is not None else every_type()
    exact = sink.best == "exactly_once"

    def life() -> _Crashing:
        return _Crashing(sink, columns, folder)

    def empty() -> str:
        before, run = len(read()), life()
        run.write_epoch(0, [])
        return _counted(read, before, "an epoch without rows was committed")

    def types() -> str:
        before, run = len(read()), life()
        run.write_epoch(1, [0])
        return _counted(read, before + 3, "an epoch with three rows was committed")

    def visible() -> str:
        before, run = len(read()), life()
        messages = run.stage(2, [3, 6])
        wrong = _counted(read, before, "rows were staged and not committed")
        if not wrong:
            sink.commit(messages, run.epoch(2), run.context)
            wrong = _counted(read, before + 6, "an epoch of two parts was committed")
        return wrong

    def replay() -> str:
        """The process dies after the commit, before the checkpoint has noted it."""
        before = len(read())
        life().write_epoch(3, [9])
        life().write_epoch(3, [9])
        return _counted(read, before + 3, "an epoch of three rows was committed and then repeated") if exact else ""

    def stopped() -> str:
        before, first = len(read()), life()
        sink.abort(first.stage(4, [12]), first.epoch(4), first.context)
        wrong = _counted(read, before, "an epoch was staged and aborted")
        first.stage(4, [12])  # a kill: nobody aborts
        life().write_epoch(4, [12])
        return wrong or _counted(read, before + 3, "an epoch was staged, aborted, staged, forgotten, and then committed")

    def own_ledger() -> str:
        run = life()
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
    yield Check("kill inside of the commit", lambda: _killed(life, read, exact))


def _killed(life: Callable[[], _Crashing], read: Callable[[], Sequence[Any]], exact: bool) -> str:
    """The process dies inside of `commit`, before each of its lines in turn, and the next one goes on."""
    first, limit = life(), time.monotonic() + PATIENCE / 2
    staged = first.stage(6, [18, 21])
    for number, moment in enumerate(kills.moments(type(first.sink), lambda: first.commit(staged, 6)), 7):
        if time.monotonic() > limit:  # the target is slow: the first moments have to do
            break
        before, parts = len(read()), [6 * number, 6 * number + 3]
        life().write_epoch_until(number, parts, moment)
        life().write_epoch(number, parts)
        found = len(read()) - before
        if found < 6 or (exact and found > 6):
            when = f"the process died in `commit` before {moment}, and the epoch of 6 rows was written again where `held` did not name it"
            return f"{when}: readers see {found} of its rows; publish the rows and the epoch's number in one transaction"
    return ""


@dataclass
class _Crashing:
    """One life of the engine: it knows what the target says, and nothing of its last life."""

    sink: ArrowSink
    schema: pa.Schema
    folder: Path

    def __post_init__(self) -> None:
        self.context = make_context(self.folder)
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
            self.commit(self.stage(number, parts), number)

    def write_epoch_until(self, number: int, parts: Sequence[int], moment: kills.Moment) -> None:
        """Die inside of the commit."""
        messages = self.stage(number, parts)
        kills.run_until(type(self.sink), moment, lambda: self.commit(messages, number))

    def commit(self, messages: Sequence[Any], number: int) -> None:
        self.sink.commit(messages, self.epoch(number), self.context)


def _counted(read: Callable[[], Sequence[Any]], wanted: int, when: str) -> str:
    found = len(read())
    return "" if found == wanted else f"{when}, and readers see {found} rows instead of {wanted}"
