"""The spool's folder where no JVM is: Arrow's file systems do what the local one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.clients.storage import LocalStorage
from millstream.connectors.postgres.read.folder import RemoteFolder, SpoolFolder, open_folder
from millstream.connectors.postgres.read.spool import Chunk, Spool
from millstream.errors import TemporaryError


@pytest.mark.parametrize("kind", [LocalStorage, lambda path: RemoteFolder(f"file://{path}")], ids=["local", "remote"])
def test_a_manifest_is_put_once(kind: type[LocalStorage], tmp_path: Path) -> None:
    place: SpoolFolder = kind(tmp_path)
    spool = Spool(place)
    assert spool.last() is None and place.read("spool/x") is None and place.names("spool") == []
    assert spool.add(Chunk(1, 5, 7, files=("a",))) == spool.last()
    with pytest.raises(TemporaryError):
        spool.add(Chunk(1, 6, 8))
    spool.add(Chunk(2, 6, 8))
    assert spool.numbers() == [1, 2] and spool.chunk(1).end == 5


def test_a_folder_is_opened_by_its_address(tmp_path: Path) -> None:
    assert isinstance(open_folder(str(tmp_path)), LocalStorage)
    assert isinstance(open_folder(f"file://{tmp_path}"), LocalStorage)
