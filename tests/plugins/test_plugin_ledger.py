"""A sink's target that was restored or emptied during a run gets no further epochs: it would lack those in between for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.plugins.shelf import SqliteSink, numbers_in

from millstream import Epoch, LedgerEntry, NodeContext
from millstream.errors import RunError
from millstream.plan.components import Staged, arrow_sink
from millstream.plan.components.arrow_sink import ArrowSinkRun, Messages
from millstream.testing.conformance.surroundings import NODE, make_context

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


def test_an_abort_that_fails_does_not_hide_that_the_target_was_emptied(tmp_path: Path) -> None:
    class Leaves(SqliteSink):
        def abort(self, messages: Sequence[Any], epoch: Epoch, context: NodeContext) -> None:
            raise OSError("no such folder")

    with pytest.raises(RunError) as failed:
        commit(Leaves(path=str(tmp_path / "out.db")).open(make_context(tmp_path)), 1, LedgerEntry(0, "digest"))
    assert failed.value.diagnostics[0].code == "MS140"


@pytest.mark.parametrize(
    ("fails", "said"),
    [("commit", "`commit` raised OSError: gone"), ("stage", "the unpickling of what `write` returned raised UnpicklingError")],
)
def test_a_failure_on_the_driver_says_what_was_called(fails: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Gone(SqliteSink):
        def commit(self, messages: Sequence[Any], epoch: Epoch, context: NodeContext) -> None:
            raise OSError("gone")

    part = SimpleNamespace(message=b"no pickle", rows=1, bytes=1)
    monkeypatch.setattr(arrow_sink, "schema_of", lambda frame: pa.schema([("n", pa.int64())]))
    monkeypatch.setattr(arrow_sink, "map_batches", lambda *_: SimpleNamespace(collect=lambda: [part]))
    run: Any = Gone(path=str(tmp_path / "out.db")).open(make_context(tmp_path))
    with pytest.raises(RunError) as failed:
        run.stage(None, EPOCH) if fails == "stage" else commit(run, 0)
    assert failed.value.diagnostics[0].message.startswith(f"`{NODE}`: {said}")
