"""A copy of a checkpoint is consistent although Spark goes on planning and removing files: what a copied epoch refers to is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checkpoint import savepoint
from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import LocalStorage


class Busy(LocalStorage):
    """While its files are listed, Spark plans one more epoch, whose chunk is written before."""

    planned = 1

    def files(self, path: str = "") -> list[str]:
        """Folders are listed one after the other, in any order: here the one with the chunks first."""
        chunks = [found for found in super().files(path) if "/sources/" in found]
        self._plan()
        return [*chunks, *(found for found in super().files(path) if "/sources/" not in found)]

    def names(self, path: str = "") -> list[str]:
        found = super().names(path)
        if path.endswith("offsets"):
            self._plan()
        return found

    def _plan(self) -> None:
        type(self).planned += 1
        (self.root / f"queries/q/sources/0/{self.planned}").write_text("chunk")
        (self.root / f"queries/q/offsets/{self.planned}").write_text("offset")


@pytest.fixture
def busy(tmp_path: Path) -> Busy:
    for folder in ("offsets", "commits", "sources/0"):
        (tmp_path / "from/queries/q" / folder).mkdir(parents=True)
        (tmp_path / "from/queries/q" / folder / "0").write_text("0")
    return Busy(tmp_path / "from")


def test_every_planned_epoch_has_what_it_refers_to(busy: Busy, tmp_path: Path) -> None:
    savepoint.copy(Checkpoint(busy, "p"), LocalStorage(tmp_path / "to"), running=True)
    copied = {name: {path.name for path in (tmp_path / "to/queries/q" / name).iterdir()} for name in ("offsets", "sources/0")}
    assert copied["offsets"] <= copied["sources/0"]
    assert "0" in copied["offsets"]


@pytest.mark.parametrize(("path", "refused"), [("queries/q/commits/0", False), ("_millstream/nodes/s/spool/chunk", True)])
def test_only_files_that_spark_removes_may_be_missing(
    busy: Busy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, refused: bool
) -> None:
    gone, copy_file = tmp_path / "from" / path, savepoint._copy_file
    gone.parent.mkdir(parents=True, exist_ok=True)
    gone.write_text("x")

    def removing(source: LocalStorage, target: LocalStorage, name: str) -> None:
        if name == path:
            gone.unlink()
        copy_file(source, target, name)

    monkeypatch.setattr(savepoint, "_copy_file", removing)
    copy = lambda: savepoint.copy(Checkpoint(busy, "p"), LocalStorage(tmp_path / "to"), running=True)  # noqa: E731 — called in two ways
    if refused:
        with pytest.raises(FileNotFoundError):
            copy()
    else:
        copy()
    assert (tmp_path / "to" / savepoint.UNFINISHED).exists() is refused
