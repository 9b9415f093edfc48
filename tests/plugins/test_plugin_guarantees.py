"""The guarantee of a plugin's sink follows from what it implements: with `held` it is exactly once, without it at least once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import millstream
from millstream import ArrowSink, Epoch, LedgerEntry, NodeContext
from millstream.plan.components import KeepsLedger
from millstream.testing import conformance
from millstream.testing.conformance.surroundings import make_context


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


def test_a_commit_that_may_be_repeated_conforms(tmp_path: Path) -> None:
    conformance.verify(Files(folder=str(tmp_path)), read=lambda: "".join(path.read_text() for path in tmp_path.iterdir()))


def test_one_that_may_not_is_caught(tmp_path: Path) -> None:
    read = lambda: "".join(path.read_text() for path in tmp_path.iterdir())  # noqa: E731 — as short as in the test above
    failed = {finding.check for finding in conformance.findings(Appended(folder=str(tmp_path)), read=read)}
    assert failed == {"replay of an epoch"}
