"""A sink's target that was restored or emptied during a run gets no further epochs: it would lack those in between for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.shelf import SqliteSink, numbers_in

from millstream import Epoch, LedgerEntry
from millstream.errors import RunError
from millstream.plan.components import Staged
from millstream.plan.components.arrow_sink import ArrowSinkRun, Messages
from millstream.testing.conformance.surroundings import make_context

EPOCH = Epoch("query", "sink", 0, "digest", "")


@pytest.fixture
def sink(tmp_path: Path) -> ArrowSinkRun:
    return SqliteSink(path=str(tmp_path / "out.db")).open(make_context(tmp_path))


def commit(sink: ArrowSinkRun, number: int, before: LedgerEntry | None = None) -> None:
    sink.commit(Staged(1, Messages(([number],))), replace(EPOCH, number=number, before=before))


def test_epochs_follow_each_other(sink: ArrowSinkRun, tmp_path: Path) -> None:
    commit(sink, 0)
    commit(sink, 1, LedgerEntry(0, "digest"))
    assert numbers_in(tmp_path / "out.db") == [0, 1]


def test_a_target_that_was_emptied_gets_nothing(sink: ArrowSinkRun, tmp_path: Path) -> None:
    commit(sink, 0)
    (tmp_path / "out.db").unlink()
    with pytest.raises(RunError) as failed:
        commit(sink, 1, LedgerEntry(0, "digest"))
    assert failed.value.diagnostics[0].code == "MS140"
    assert numbers_in(tmp_path / "out.db") == []
