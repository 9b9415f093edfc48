"""`millstream checkpoint copy`: a savepoint that runs, and is never taken for whole before it is."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint import savepoint
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.lease import take
from millstream.checkpoint.verification import damages
from millstream.clients.storage import LocalStorage
from millstream.errors import RunError

pytestmark = pytest.mark.spark
Command = Callable[..., subprocess.CompletedProcess[str]]


def source(kept: Path) -> Checkpoint:
    return Checkpoint(LocalStorage(kept / ".millstream/kept"), "kept")


def test_the_copy_is_whole_and_leaves_logs_and_lease_behind(kept: Path, millstream: Command) -> None:
    done = millstream("checkpoint", "copy", "kept.yaml", "saved", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] > 10
    assert damages(Checkpoint(LocalStorage(kept / "saved"), "kept")) == []
    assert sorted(entry.name for entry in (kept / "saved").iterdir()) == ["_millstream", "queries"]
    assert not (kept / "saved/_millstream/lock").exists()


def test_a_copy_that_was_cut_short_is_refused_until_it_is_made_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, copied = LocalStorage(kept / "saved"), []
    original = savepoint._copy_file

    def dying(*arguments: object) -> None:
        if len(copied) == 12:
            raise KeyboardInterrupt
        copied.append(original(*arguments))

    monkeypatch.setattr(savepoint, "_copy_file", dying)
    with pytest.raises(KeyboardInterrupt):
        savepoint.copy(source(kept), target)
    monkeypatch.undo()
    with pytest.raises(RunError, match="MS056"):
        Checkpoint(target, "kept").claim()
    savepoint.copy(source(kept), target)
    Checkpoint(target, "kept").claim().release()
    assert damages(Checkpoint(target, "kept")) == []


@pytest.mark.parametrize("target", ["in", ".millstream/kept/saved", ".millstream"])
def test_it_goes_to_a_folder_of_its_own(kept: Path, target: str) -> None:
    with pytest.raises(RunError, match="MS059"):
        savepoint.copy(source(kept), LocalStorage(kept / target))


def test_it_is_refused_while_a_run_holds_the_lease(kept: Path, millstream: Command) -> None:
    lease = take(LocalStorage(kept / ".millstream/kept/_millstream"), "kept")
    try:
        for action in (["copy", "kept.yaml", "saved"], ["verify", "kept.yaml"]):
            done = millstream("checkpoint", *action)
            assert done.returncode == 1
            assert "MS050" in done.stderr
    finally:
        lease.release()
    assert not (kept / "saved").exists()
    assert millstream("checkpoint", "copy", "kept.yaml", "saved").returncode == 0


def test_a_pipeline_goes_on_from_the_copy(pipeline: Callable, run: Callable, tmp_path: Path, kept_text: str) -> None:
    def write(number: int, k: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{number}.json").write_text(json.dumps({"k": k, "x": 1}))

    text = kept_text.replace("type: blackhole", "type: memory")
    write(0, "a")
    run(pipeline(text, "kept"))
    savepoint.copy(Checkpoint(LocalStorage(tmp_path / ".millstream/kept"), "kept"), LocalStorage(tmp_path / "saved"))
    write(1, "a")
    again = pipeline(text.replace("settings: {", "settings: {checkpoint: saved, "), "kept")
    run(again)
    assert [row["n"] for row in again.node("out").component.rows()] == [2]
