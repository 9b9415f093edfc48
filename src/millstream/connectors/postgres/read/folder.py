"""The node's folder in the checkpoint, for processes without a JVM: local files, or Arrow's file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pyarrow.fs as pafs

from millstream.clients.storage import LocalStorage, is_local

_SCHEMES = {"s3a": "s3", "s3n": "s3", "gs": "gs", "hdfs": "hdfs", "viewfs": "viewfs"}


class SpoolFolder(Protocol):
    """The operations that a spool needs."""

    def read(self, path: str) -> bytes | None: ...
    def put(self, path: str, data: bytes) -> None: ...
    def put_once(self, path: str, data: bytes) -> bool: ...
    def names(self, path: str = "") -> list[str]: ...


def open_folder(url: str, durable: bool = True) -> SpoolFolder:
    """The folder at a URL."""
    return LocalStorage(Path(url.removeprefix("file://")), durable) if is_local(url) else RemoteFolder(url)


class RemoteFolder:
    """A remote folder. The writer holds the slot's lock, so that a test before writing is enough."""

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
