"""An epoch's files are seen all together or not at all, once, wherever the run is killed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.conftest import opened

from millstream.clients.storage import LocalStorage
from millstream.connectors.file import sink as sink_module
from millstream.connectors.file.committed import committed_files, read_committed
from millstream.connectors.file.sink import FileSink
from millstream.connectors.file.write.manifests import ManifestEntry, Manifests, Move, key_of
from millstream.errors import RunError
from millstream.plan.components import Epoch, Staged

spark_only = pytest.mark.spark


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def write(spark: Any, out: Path) -> Callable[..., Any]:
    """Stage, and commit, some rows as one epoch."""

    def go(epoch: Epoch, ids: range, *, commit: bool = True, **options: Any) -> Staged[Any]:
        sink = opened(FileSink(path=str(out), **{"format": "parquet"} | options))
        staged = sink.stage(spark.range(ids.start, ids.stop).selectExpr("id", "id % 2 AS odd"), epoch)
        if commit:
            sink.commit(staged, epoch)
        return staged

    return go


def seen(out: Path) -> list[int]:
    """What a reader sees that knows nothing of manifests."""
    import pyarrow.parquet as pq

    files = [file for file in out.rglob("*.parquet") if not any(part.startswith("_") for part in file.relative_to(out).parts)]
    return sorted(value for file in files for value in pq.ParquetFile(file).read()["id"].to_pylist())


def ids(out: Path) -> list[int]:
    return sorted(read_committed(str(out))["id"].to_pylist()) if committed_files(str(out)) else []


@spark_only
def test_staged_rows_are_invisible_and_committed_ones_are_there_once(out: Path, write: Callable, epoch: Callable) -> None:
    assert write(epoch(), range(5), commit=False).rows == 5
    assert (seen(out), ids(out)) == ([], [])
    write(epoch(1), range(5, 8))
    assert (seen(out), ids(out)) == ([5, 6, 7], [5, 6, 7])


@spark_only
def test_a_repeated_epoch_is_not_written_again(spark: Any, out: Path, write: Callable, epoch: Callable) -> None:
    write(epoch(3, "same"), range(3))
    write(epoch(3, "same"), range(3))
    assert ids(out) == seen(out) == [0, 1, 2]
    held = opened(FileSink(path=str(out), format="parquet")).ledger(spark, epoch())
    assert held
    assert (held.epoch, held.digest) == (3, "same")


@spark_only
def test_without_the_manifest_it_would_be(out: Path, write: Callable, epoch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manifests, "put_once", lambda *_: True)
    monkeypatch.setattr(sink_module, "final_name", lambda name, *_: name)
    for _ in range(2):
        write(epoch(3, "same"), range(3))
    assert seen(out) == [0, 0, 1, 1, 2, 2]


@spark_only
def test_an_epoch_of_another_history_is_refused(out: Path, write: Callable, epoch: Callable) -> None:
    write(epoch(3, "one"), range(3))
    with pytest.raises(RunError, match=r"MS055"):
        write(epoch(3, "other"), range(100, 103))
    assert ids(out) == seen(out) == [0, 1, 2]
    assert LocalStorage(out).names("_staging") == []


@spark_only
@pytest.mark.parametrize("after", [0, 1], ids=["before the first rename", "between renames"])
def test_killed_between_manifest_and_renames(
    spark: Any, out: Path, context: Callable, write: Callable, epoch: Callable, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    write(epoch(0), range(4))
    rename, done = LocalStorage.rename, []

    def dies(self: LocalStorage, old: str, new: str) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(old)
        rename(self, old, new)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            write(epoch(1), range(4, 8), partition_by=["odd"])
    assert ids(out) == list(range(8)), "the manifest is the commit"
    assert len(seen(out)) < 8
    FileSink(path=str(out), format="parquet").open(context()).prepare(spark)
    assert ids(out) == seen(out) == list(range(8))
    assert LocalStorage(out).names("_staging") == []


@spark_only
def test_killed_before_the_manifest_leaves_rubbish_that_is_removed(spark: Any, out: Path, write: Callable, epoch: Callable) -> None:
    write(epoch(0), range(4))
    write(epoch(1), range(4, 8), commit=False)
    other = write(epoch(1, sink="other"), range(50, 52), commit=False)
    sink = opened(FileSink(path=str(out), format="parquet"))
    held = sink.ledger(spark, epoch(1))
    assert held
    assert held.epoch == 0
    assert len(LocalStorage(out).names("_staging")) == 1, "another sink's unfinished work is not touched"
    sink.commit(other, epoch(1, sink="other"))
    write(epoch(1), range(4, 8))
    assert ids(out) == seen(out) == [*range(8), 50, 51]


@spark_only
def test_an_aborted_epoch_leaves_nothing(out: Path, write: Callable, epoch: Callable) -> None:
    opened(FileSink(path=str(out), format="parquet")).abort(write(epoch(), range(3), commit=False), epoch())
    assert (ids(out), LocalStorage(out).names("_staging")) == ([], [])


@spark_only
def test_two_sinks_share_a_directory(spark: Any, out: Path, write: Callable, epoch: Callable) -> None:
    for number in range(2):
        write(epoch(number, sink="a"), range(number * 10, number * 10 + 2))
        write(epoch(number, sink="a.b"), range(number * 10 + 5, number * 10 + 7))
    assert ids(out) == seen(out) == [0, 1, 5, 6, 10, 11, 15, 16]
    assert opened(FileSink(path=str(out), format="parquet")).ledger(spark, epoch(sink="a", query="reset")) is None


@spark_only
def test_an_epoch_without_rows_is_remembered_and_makes_no_file(spark: Any, out: Path, write: Callable, epoch: Callable) -> None:
    assert write(epoch(7, "empty"), range(0)).rows == 0
    assert committed_files(str(out)) == []
    assert list(out.rglob("*.parquet")) == []
    held = opened(FileSink(path=str(out), format="parquet")).ledger(spark, epoch())
    assert held
    assert held.epoch == 7


def entry(number: int) -> ManifestEntry:
    return ManifestEntry(number, f"d{number}", 1, 10, (Move(f"_staging/{number}", f"part-{number}"),))


def test_manifests_are_folded_and_nothing_is_forgotten(tmp_path: Path, epoch: Callable) -> None:
    manifests, folder = Manifests(LocalStorage(tmp_path), "k"), tmp_path / "_millstream/k"
    for number in range(250):
        manifests.put_once(entry(number))
        manifests.fold(number)
    assert len(list(folder.iterdir())) == 52
    assert [*manifests.all()] == [entry(number) for number in range(250)]
    assert (manifests.newest(), manifests.read(42), manifests.read(999)) == (entry(249), entry(42), None)


def test_killed_while_folding_nothing_counts_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = Manifests(LocalStorage(tmp_path), "k")
    for number in range(100):
        manifests.put_once(entry(number))
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            manifests.fold(99)
    assert len(list((tmp_path / "_millstream/k").iterdir())) == 101
    assert [*manifests.all()] == [entry(number) for number in range(100)]
    manifests.put_once(entry(199))
    manifests.fold(199)
    assert len(list((tmp_path / "_millstream/k").iterdir())) == 2


def test_a_damaged_manifest_is_said_and_not_skipped(tmp_path: Path) -> None:
    manifests = Manifests(LocalStorage(tmp_path), "k")
    manifests.put_once(entry(0))
    (tmp_path / "_millstream/k/00000000.json").write_text(json.dumps([{"epoch": 0}]))
    with pytest.raises(RunError, match=r"MS052"):
        manifests.newest()


def test_keys_tell_sinks_and_queries_apart(epoch: Callable) -> None:
    keys = {key_of(epoch(sink=sink, query=query)) for sink in ("a", "a.b", "a-b", "größe") for query in ("q1", "q2")}
    assert len(keys) == 8
    assert all(key.replace("-", "").isalnum() and key.isascii() for key in keys)


def test_a_reader_of_nothing_finds_nothing(tmp_path: Path) -> None:
    assert committed_files(str(tmp_path / "nowhere")) == []
    assert read_committed(str(tmp_path / "nowhere")).num_rows == 0
