"""After a million epochs a commit, a fold and a start read what they read after a thousand: counted in files and bytes."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.connectors.file.write import manifests as module
from millstream.connectors.file.write.manifests import ManifestEntry, Manifests, Move
from millstream.errors import RunError

MILLION = 1_000_000


class Counted(LocalStorage):
    """A folder that notes what is read."""

    read_bytes: list[int]

    def child(self, path: str) -> "Counted":
        below = Counted(self.root / path, self.durable)
        below.read_bytes = self.read_bytes
        return below

    def read(self, path: str) -> bytes | None:
        data = super().read(path)
        self.read_bytes.append(len(data or b""))
        return data


def entry(number: int) -> ManifestEntry:
    moves = tuple(Move(f"_staging/{number}/{file}", f"part-k-{number:08d}-{file:05d}.snappy.parquet") for file in range(4))
    return ManifestEntry(number, "d" * 64, 100, 10_000, moves)


def lines(first: int, last: int) -> bytes:
    return b"".join(json.dumps(asdict(entry(number))).encode() + b"\n" for number in range(first, last + 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The commits of a million epochs but the last one. The older ones cannot be read: nobody needs them."""
    made = tmp_path / "_millstream/k"
    made.mkdir(parents=True)
    for first in range(0, MILLION - 10_000, 10_000):
        (made / f"{first:08d}-{first + 9_999:08d}.json").write_bytes(b"never read")
    for first in range(MILLION - 10_000, MILLION - 100, 100):
        (made / f"{first:08d}-{first + 99:08d}.json").write_bytes(lines(first, first + 99))
    for number in range(MILLION - 100, MILLION - 1):
        (made / f"{number:08d}.json").write_bytes(lines(number, number))
    return made


def counted(folder: Path) -> tuple[Manifests, list[int]]:
    root = Counted(folder.parent.parent, durable=False)
    root.read_bytes = []
    return Manifests(root, "k"), root.read_bytes


def test_the_millionth_fold_reads_the_last_ten_thousand_epochs(folder: Path) -> None:
    commits, read = counted(folder)
    commits.put_once(entry(MILLION - 1))
    commits.fold(MILLION - 1)
    assert len(read) == 200
    assert sum(read) < 12_000_000
    assert len(list(folder.iterdir())) == 100


def test_a_start_reads_one_file_of_a_limited_size(folder: Path) -> None:
    commits, read = counted(folder)
    commits.put_once(entry(MILLION - 1))
    commits.fold(MILLION - 1)
    read.clear()
    assert commits.newest() == entry(MILLION - 1)
    assert len(read) == 1
    assert read[0] <= module._LARGEST
    assert (commits.read(MILLION - 1), commits.read(MILLION)) == (entry(MILLION - 1), None)


def test_a_fold_of_everything_would_read_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WIDTHS", (100, 10_000, MILLION))
    commits, _ = counted(folder)
    commits.put_once(entry(MILLION - 1))
    with pytest.raises(RunError, match="MS052"):
        commits.fold(MILLION - 1)


def test_large_epochs_are_folded_into_files_of_a_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 10_000)
    commits = Manifests(LocalStorage(tmp_path, durable=False), "k")
    for number in range(200):
        commits.put_once(entry(number))
        commits.fold(number)
    sizes = [path.stat().st_size for path in (tmp_path / "_millstream/k").iterdir()]
    assert len(sizes) < 20
    assert max(sizes) <= 10_000
    assert [*commits.all()] == [entry(number) for number in range(200)]


def test_files_of_older_versions_are_read_and_folded(tmp_path: Path) -> None:
    folder = tmp_path / "_millstream/k"
    folder.mkdir(parents=True)
    for name, numbers in {
        "00000000-00000099": range(100),
        **{f"{number:08d}": range(number, number + 1) for number in range(100, 199)},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps([asdict(entry(number)) for number in numbers], ensure_ascii=False))
    commits = Manifests(LocalStorage(tmp_path, durable=False), "k")
    assert (commits.newest(), commits.read(42)) == (entry(198), entry(42))
    commits.put_once(entry(199))
    commits.fold(199)
    assert len(list(folder.iterdir())) == 2
    assert [*commits.all()] == [entry(number) for number in range(200)]
