"""Readers see all files of an epoch or none, also while the sink renames, commits and folds."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.connectors.file.committed import committed_files
from millstream.connectors.file.write.manifests import ManifestEntry, Manifests, Move
from millstream.connectors.file.write.staging import clear, move

FILES = 4


class Writer:
    """Commits epochs as a file sink does, without Spark."""

    def __init__(self, out: Path) -> None:
        self.root = LocalStorage(out, durable=False)
        self.manifests = Manifests(self.root, "k")

    def put(self, epoch: int) -> ManifestEntry:
        moves = tuple(Move(f"_staging/k-{epoch}/{file}", f"d{file}/part-{epoch}-{file}") for file in range(FILES))
        for step in moves:
            self.root.put(step.source, b"x")
        entry = ManifestEntry(epoch, "d", FILES, FILES, moves)
        self.manifests.put_once(entry)
        return entry

    def finish(self, entry: ManifestEntry) -> None:
        move(self.root, entry)
        clear(self.root, f"_staging/k-{entry.epoch}")
        self.manifests.fold(entry.epoch)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def by_epoch(files: list[str]) -> Counter[int]:
    parts = [Path(file).parts for file in files]
    return Counter(int(part[-1].split("-")[1] if part[-1].startswith("part") else part[-2].split("-")[1]) for part in parts)


def torn(tmp_path: Path) -> list[int]:
    return [epoch for epoch, files in by_epoch(committed_files(str(tmp_path))).items() if files != FILES]


def test_no_look_shows_half_an_epoch_while_another_thread_writes(tmp_path: Path, writer: Writer) -> None:
    over = threading.Event()

    def write() -> None:
        for epoch in range(250):
            writer.finish(writer.put(epoch))
        over.set()

    thread = threading.Thread(target=write)
    thread.start()
    looks = []
    while not over.is_set():
        looks.append(torn(tmp_path))
    thread.join()
    assert len(looks) > 2
    assert not any(looks)
    assert by_epoch(committed_files(str(tmp_path))) == dict.fromkeys(range(250), FILES)


def test_files_that_move_while_they_are_listed_are_found(tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing is no moment: the places are read before the renames, the staging folder after them."""
    entry = writer.put(0)
    listed = LocalStorage.files

    def moving(self: LocalStorage, path: str = "") -> list[str]:
        before = [name for name in listed(self, path) if not name.startswith("_staging")]
        writer.finish(entry)
        return before

    monkeypatch.setattr(LocalStorage, "files", moving)
    assert by_epoch(committed_files(str(tmp_path))) == {0: FILES}


def test_listing_before_the_commits_are_read_would_tear_an_epoch(tmp_path: Path, writer: Writer) -> None:
    root = LocalStorage(tmp_path)
    entry = writer.put(0)
    move(root, ManifestEntry(0, "d", 1, 1, entry.files[:2]))
    there = {name for name in root.files() if not name.startswith("_staging")}
    writer.finish(entry)
    places = [step.target for each in writer.manifests.all() for step in each.files if step.target in there]
    assert len(places) == 2


def test_a_fold_between_listing_and_reading_is_no_damage(tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch in range(99):
        writer.finish(writer.put(epoch))
    last, names = [writer.put(99)], LocalStorage.names

    def folding(self: LocalStorage, path: str = "") -> list[str]:
        found = names(self, path)
        if len(found) == 100 and last:
            writer.finish(last.pop())
        return found

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "names", folding)
        found = by_epoch(committed_files(str(tmp_path)))
    assert not last, "it was folded meanwhile"
    assert found == dict.fromkeys(range(100), FILES)


def test_a_manifest_that_is_listed_and_never_there_is_damage(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.put(0)
    monkeypatch.setattr(LocalStorage, "read", lambda *_: None)
    with pytest.raises(Exception, match="MS052"):
        list(writer.manifests.all())
