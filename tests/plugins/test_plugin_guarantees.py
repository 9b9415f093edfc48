"""The guarantee of a plugin's sink follows from what it implements: with `held` it is exactly once, without it at least once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import millstream
from millstream import ArrowSink, Epoch, LedgerEntry, NodeContext
from millstream.errors import RunError
from millstream.plan.components import KeepsLedger
from millstream.testing import conformance
from millstream.testing.conformance.surroundings import make_context
from millstream.worker.plugin_tasks import WriteTask, started


@millstream.plugin("test.files")
class Files(ArrowSink):
    """A file for each epoch, written again if the epoch is."""

    best: ClassVar[Any] = "exactly_once"
    folder: str

    def write(self, batches: Any, task: Any) -> int:
        return sum(batch.num_rows for batch in batches)

    def commit(self, messages: Sequence[int], epoch: Epoch, context: NodeContext) -> None:
        Path(self.folder, f"{epoch.number}").write_text("x" * sum(messages))


@millstream.plugin("test.appended")
class Appended(Files):
    """The same, and a repeated epoch is appended: what it says of itself is wrong."""

    def commit(self, messages: Sequence[int], epoch: Epoch, context: NodeContext) -> None:
        with Path(self.folder, f"{epoch.number}").open("a") as file:
            file.write("x" * sum(messages))


class Plain(ArrowSink):
    type = "plain"


class WithLedger(Plain):
    def held(self, epoch: Epoch, context: NodeContext) -> LedgerEntry | None:
        return None


def test_the_guarantee_follows_from_the_ledger(tmp_path: Path) -> None:
    assert (Plain.best, Plain.holds_ledger, WithLedger.best, WithLedger.holds_ledger) == ("at_least_once", False, "exactly_once", True)
    assert isinstance(WithLedger().open(make_context(tmp_path)), KeepsLedger)
    assert not isinstance(Plain().open(make_context(tmp_path)), KeepsLedger)


class WithTuple(Plain):
    def held(self, epoch: Epoch, context: NodeContext) -> Any:
        return (epoch.number, epoch.digest)


def test_what_is_no_entry_of_a_ledger_is_said(tmp_path: Path) -> None:
    run: Any = WithTuple().open(make_context(tmp_path))
    with pytest.raises(RunError, match=r"MS206.*`held` returned tuple, and not a `LedgerEntry`"):
        run.ledger(None, Epoch("q", "s", 0, "d", ""))


def test_each_attempt_has_a_number_of_its_own_in_every_run() -> None:
    """Spark counts tasks from 0 in each run: a file named after such a number would replace one that is committed."""
    task = WriteTask("sink", pa.schema([]))
    numbers = {started(task).attempt for _ in range(100)}
    assert len(numbers) == 100


def test_a_commit_that_may_be_repeated_conforms(tmp_path: Path) -> None:
    conformance.verify(Files(folder=str(tmp_path)), read=lambda: "".join(path.read_text() for path in tmp_path.iterdir()))


def test_one_that_may_not_is_caught(tmp_path: Path) -> None:
    read = lambda: "".join(path.read_text() for path in tmp_path.iterdir())  # noqa: E731 — as short as in the test above
    failed = {finding.check for finding in conformance.findings(Appended(folder=str(tmp_path)), read=read)}
    assert failed == {"replay of an epoch"}
