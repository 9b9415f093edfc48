"""The node's folder in the checkpoint, from processes that have no JVM: the machine's own files, or what Arrow's file systems reach."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pyarrow.fs as pafs

from millstream.clients.storage import LocalStorage, is_local

_SCHEMES = {"s3a": "s3", "s3n": "s3", "gs": "gs", "hdfs": "hdfs", "viewfs": "viewfs"}


class Place(Protocol):
    """The few operations that a spool needs."""

    def read(self, path: str) -> bytes | None: ...
    def put(self, path: str, data: bytes) -> None: ...
    def put_once(self, path: str, data: bytes) -> bool: ...
    def names(self, path: str = "") -> list[str]: ...


def opened(url: str, durable: bool = True) -> Place:
    """The folder at a URL."""
    return LocalStorage(Path(url.removeprefix("file://")), durable) if is_local(url) else RemotePlace(url)


class RemotePlace:
    """A folder elsewhere. Whoever writes holds the slot's lock, so that a look before writing is enough."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self._system, self._root = pafs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")

    def read(self, path: str) -> bytes | None:
        try:
            with self._system.open_input_file(self._at(path)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def put(self, path: str, data: bytes) -> None:
        self._system.create_dir(self._at(path).rpartition("/")[0])
        with self._system.open_output_stream(f"{self._at(path)}.tmp") as file:
            file.write(data)
        self._system.move(f"{self._at(path)}.tmp", self._at(path))

    def put_once(self, path: str, data: bytes) -> bool:
        if self._system.get_file_info(self._at(path)).type != pafs.FileType.NotFound:
            return False
        self.put(path, data)
        return True

    def names(self, path: str = "") -> list[str]:
        found = self._system.get_file_info(pafs.FileSelector(self._at(path), allow_not_found=True))
        return sorted(entry.base_name for entry in found)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")
