"""The conformance suite passes plugins that keep their promises, and names the promise that another one breaks."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ConfigDict
from tests.plugins.shelf import Numbers, NumbersReader, Plus, Spread, SqliteSink, Tally, Times, Words, numbers_in

import millstream
from millstream import ArrowSource, Epoch, LedgerEntry, NodeContext, Task
from millstream.testing import conformance
from millstream.testing.conformance import promises

NUMBERS = pa.schema([("n", pa.int64())])


def checks_failed(plugin: Any, **around: Any) -> set[str]:
    return {finding.check for finding in conformance.findings(plugin, **around)}


@pytest.mark.parametrize(
    ("plugin", "around"),
    [
        (lambda folder: Numbers(folder=str(folder), total=9), {}),
        (lambda folder: Times(factor=3), {"schema": NUMBERS}),
        (lambda folder: Plus(), {}),
        (lambda folder: Spread(), {}),
        (lambda folder: Words(values={"a": "b"}), {}),
        (lambda folder: Tally(), {}),
    ],
    ids=["source", "transform", "function", "aggregate", "preprocessor", "side output"],
)
def test_a_plugin_that_keeps_its_promises_passes(plugin: Callable[[Path], Any], around: dict[str, Any], tmp_path: Path) -> None:
    conformance.verify(plugin(tmp_path), **around)


def test_a_sink_that_keeps_its_promises_passes(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    conformance.verify(SqliteSink(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))


@millstream.plugin("defect.forgetful_sink")
class CommitsTwice(SqliteSink):
    """It commits, and does not find out at the next start that it has."""

    def held(self, epoch: Epoch, context: NodeContext) -> LedgerEntry | None:
        return None


def test_a_sink_that_commits_twice_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    failed = checks_failed(CommitsTwice(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))
    assert failed == {"replay of an epoch", "ledger"}


@millstream.plugin("defect.two_steps")
class LedgerAfterwards(SqliteSink):
    """Its rows are in one transaction, and its ledger in the next one."""

    def commit(self, messages: Sequence[list[int]], epoch: Epoch, context: NodeContext) -> None:
        with closing(self._open()) as database:
            with database:
                database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for message in messages for number in message])
            with database:
                key = (epoch.query, epoch.sink, epoch.number, epoch.digest)
                database.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)", key)


@millstream.plugin("defect.part_by_part")
class PartByPart(SqliteSink):
    """It publishes each message in a transaction of its own, and the ledger with the last one."""

    def commit(self, messages: Sequence[list[int]], epoch: Epoch, context: NodeContext) -> None:
        for message in messages[:-1]:
            with closing(self._open()) as database, database:
                database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in message])
        super().commit(messages[-1:], epoch, context)


@millstream.plugin("defect.ledger_first")
class LedgerFirst(SqliteSink):
    """It notes that it holds the epoch before it does."""

    def commit(self, messages: Sequence[list[int]], epoch: Epoch, context: NodeContext) -> None:
        super().commit([], epoch, context)
        with closing(self._open()) as database, database:
            database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for message in messages for number in message])


@pytest.mark.parametrize(("sink", "seen"), [(LedgerAfterwards, 12), (PartByPart, 9), (LedgerFirst, 0)])
def test_a_sink_that_a_kill_inside_of_its_commit_makes_wrong_is_caught(sink: type[SqliteSink], seen: int, tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    (found,) = conformance.findings(sink(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))
    assert found.check == "kill inside of the commit"
    assert re.search(rf"before test_conformance_catches\.py:\d+.* readers see {seen} of its rows", found.reason)


_lock = threading.Lock()


@millstream.plugin("defect.none")
class Locked(SqliteSink):
    """Right, with a lock that a dead process would not hold."""

    def commit(self, messages: Sequence[list[int]], epoch: Epoch, context: NodeContext) -> None:
        with _lock:
            super().commit(messages, epoch, context)


def test_a_lock_in_a_right_sink_outlives_no_kill(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    conformance.verify(Locked(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folders = tmp_path / "numbers.db", tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    traced = sys.gettrace()
    conformance.verify(SqliteSink(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))
    conformance.verify(Numbers(folder=str(tmp_path), total=9))
    assert list(folders.iterdir()) == []
    assert sys.gettrace() is traced


@millstream.plugin("defect.eager_sink")
class VisibleAtOnce(SqliteSink):
    """It writes where readers see it before the epoch is committed."""

    def write(self, batches: Iterator[pa.RecordBatch], task: millstream.WriteTask) -> list[int]:
        import sqlite3

        with sqlite3.connect(self.path) as database:
            for batch in batches:
                database.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in batch.column("n").to_pylist()])
        return []


def test_a_sink_whose_rows_are_visible_at_once_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    failed = checks_failed(VisibleAtOnce(path=str(path)), schema=NUMBERS, read=lambda: numbers_in(path))
    assert "visible only after the commit" in failed


class FromTheStart(NumbersReader):
    def parts(self, start: dict, end: dict) -> list:
        return [(0, end["n"])]


class NeverStops(NumbersReader):
    def read(self, part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        for number in range(*part):
            try:
                yield pa.RecordBatch.from_pydict({"n": [number]})
            except GeneratorExit:
                continue


@millstream.plugin("defect.source")
class Defective(ArrowSource):
    """A source with the reader that it is told to have."""

    kind: str

    def output(self) -> pa.Schema:
        return NUMBERS

    def reader(self, context: NodeContext) -> NumbersReader:
        return {"forgets": FromTheStart, "goes on": NeverStops}[self.kind](6)


def test_a_source_that_forgets_its_offset_is_caught() -> None:
    assert checks_failed(Defective(kind="forgets")) == {"offset at the end", "resume after a commit"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python closes the generator once more
def test_a_source_that_ignores_a_stop_is_caught() -> None:
    assert checks_failed(Defective(kind="goes on")) == {"stop in the middle"}


@millstream.plugin("defect.dropping")
class DropsAColumn(Times):
    """It declares `m` and returns only `m`."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._product(batch.column("n"))], ["m"])


def test_a_transform_that_drops_a_column_is_caught() -> None:
    (first, *_) = [finding for finding in conformance.findings(DropsAColumn(), schema=NUMBERS) if finding.check == "columns and types"]
    assert "expected the columns `n`" in first.reason


@millstream.plugin("defect.per_batch")
class DependsOnBatches(Times):
    """Its result has the number of rows of a batch, which Spark chooses."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        return batch.append_column("m", pa.array([batch.num_rows] * batch.num_rows, pa.int64()))


def test_a_transform_that_depends_on_the_size_of_batches_is_caught() -> None:
    assert checks_failed(DependsOnBatches(), schema=NUMBERS) == {"size of batches"}


@millstream.plugin("defect.loose")
class AcceptsAnything(Plus):
    """Unknown options are accepted, and one option has no type."""

    model_config = ConfigDict(extra="allow")
    amount: Any = 1  # type: ignore[assignment]  # that is the defect


def test_options_that_accept_anything_are_caught() -> None:
    assert checks_failed(AcceptsAnything()) == {"unknown option", "wrong option"}


def test_a_check_that_does_not_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waits(NumbersReader):
        def read(self, part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
            import time

            time.sleep(3)
            return iter(())

    @millstream.plugin("defect.waiting")
    class Waiting(Defective):
        def reader(self, context: NodeContext) -> NumbersReader:
            return Waits(1)

    monkeypatch.setattr(promises, "PATIENCE", 0.2)
    reasons = [finding.reason for finding in conformance.findings(Waiting(kind=""))]
    assert any("has not ended" in reason for reason in reasons)


def test_what_is_wrong_is_said_in_one_message() -> None:
    with pytest.raises(AssertionError, match=r"Defective does not conform:\n- offset at the end: .*`parts` ignores where it starts"):
        conformance.verify(Defective(kind="forgets"))


def test_a_sink_needs_its_readers_view(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="`read`"):
        conformance.verify(SqliteSink(path=str(tmp_path / "x.db")))
