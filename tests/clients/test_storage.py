"""Of several writers exactly one puts a file; readers see the whole of it or nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage, Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path / "a")


def test_the_first_writer_wins(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        wins = list(pool.map(lambda i: storage.put_once("x/y.json", str(i).encode()), range(32)))
    assert wins.count(True) == 1
    assert storage.read("x/y.json") == str(wins.index(True)).encode()


def test_no_temporary_file_stays(storage: Storage) -> None:
    storage.put_once("x", b"1")
    storage.put_once("x", b"2")
    storage.put("x", b"3")
    assert storage.files() == ["x"]
    assert storage.read("x") == b"3"


def test_what_is_not_there_is_none_or_empty(storage: Storage) -> None:
    assert storage.read("nope") is None
    assert storage.names("nope") == []
    storage.delete("nope")


def test_files_are_listed_with_their_folders(storage: Storage) -> None:
    storage.put("a/b/c", b"")
    storage.put("d", b"")
    storage.rename("a/b/c", "e/f")
    assert storage.files() == ["d", "e/f"]
    assert storage.child("e").names() == ["f"]


@pytest.mark.spark
def test_hadoop_file_systems_keep_the_same_promises(tmp_path: Path) -> None:
    from millstream.testing import session

    storage = open_storage(f"file:{tmp_path}/h".replace("file:", "file://", 1), session())
    from millstream.clients.storage import HadoopStorage

    storage = HadoopStorage(f"file:{tmp_path}/h", session())
    assert storage.put_once("x/y", b"one")
    assert not storage.put_once("x/y", b"two")
    assert storage.read("x/y") == b"one"
    storage.put("x/y", b"three")
    storage.rename("x/y", "z/w")
    assert (storage.files(), storage.names("z"), storage.read("z/w")) == (["z/w"], ["w"], b"three")
    storage.delete("z")
    assert storage.files() == []
