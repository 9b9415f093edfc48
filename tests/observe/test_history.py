"""The history of runs stays in the checkpoint, within a limit, and without rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checkpoint import history as module
from millstream.checkpoint.history import FOLDER, History
from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import LocalStorage
from millstream.observe.events import EpochFinished, Measured, Noted, RowsSampled
from millstream.worker.masking import hide


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(LocalStorage(tmp_path), "p")


def test_the_next_run_finds_what_the_last_one_wrote(checkpoint: Checkpoint) -> None:
    for message in ("first", "second"):
        own = History(checkpoint)
        own.add([Noted(message=message), Measured(seconds=1, nodes={"n": {"rows_out": 3}}, queries={})])
        own.flush()
    assert [event.message for event in History(checkpoint).events() if isinstance(event, Noted)] == ["first", "second"]
    assert len(list(History(checkpoint).measures())) == 2


def test_it_is_a_ring(checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILE_BYTES", 1000)
    own = History(checkpoint)
    for number in range(2000):
        own.add([Noted(message=f"{number:050}")])
    own.flush()
    size = sum(file.stat().st_size for file in (tmp_path / FOLDER).rglob("*.jsonl"))
    assert size <= 1200 * module._FILES
    kept = [int(event.message) for event in own.events() if isinstance(event, Noted)]
    assert kept == list(range(kept[0], 2000))


def test_rows_are_never_kept(checkpoint: Checkpoint, tmp_path: Path) -> None:
    own = History(checkpoint)
    own.add([RowsSampled(node="n", query="q", epoch=1, rows=('{"card": "4111"}',), read_again=False), Noted(message="m")])
    own.flush()
    written = "".join(file.read_text() for file in (tmp_path / FOLDER).rglob("*.jsonl"))
    assert "4111" not in written
    assert "noted" in written


def test_a_damaged_line_is_left_out(checkpoint: Checkpoint, tmp_path: Path) -> None:
    own = History(checkpoint)
    own.add([Noted(message="a"), Noted(message="b")])
    own.flush()
    (file,) = (tmp_path / FOLDER / "events").glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-5])
    later = History(checkpoint)
    later.add([Noted(message="c")])
    later.flush()
    assert [event.message for event in later.events() if isinstance(event, Noted)] == ["a", "c"]


def test_short_runs_leave_few_files(checkpoint: Checkpoint, tmp_path: Path) -> None:
    for number in range(40):
        own = History(checkpoint)
        own.add([Noted(message=str(number))])
        own.flush()
    assert len(list((tmp_path / FOLDER).rglob("*.jsonl"))) == 1
    assert [event.message for event in History(checkpoint).events() if isinstance(event, Noted)] == [str(number) for number in range(40)]


@pytest.mark.parametrize("secret", ['q"uo\\te', "pässwörd-lang", "7"])
def test_secrets_are_hidden_and_numbers_stay(checkpoint: Checkpoint, tmp_path: Path, secret: str) -> None:
    own = History(checkpoint, lambda text: hide(text, (secret,)))
    own.add([Noted(message=f"with {secret} in it"), EpochFinished(query="q", epoch=7, seconds=7, rows_out={"s": 7})])
    own.flush()
    noted, finished = own.events()
    assert isinstance(noted, Noted) and secret not in noted.message
    assert isinstance(finished, EpochFinished) and (finished.epoch, finished.rows_out) == (7, {"s": 7})
