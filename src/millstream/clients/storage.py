"""Files by URL: the operations that exactly-once needs, on the local file system and on every Hadoop one.

`put_once` makes decisions: exactly one of several writers succeeds, and a reader sees the whole file or none. Locally it is a hard link to
a finished temporary file (link fails when the name exists); on Hadoop file systems a rename, which fails likewise. A local folder is
durable by default: when `put` returns, the file and its name are on the disk, and `sync` does the same for files that others have written.
A Hadoop file system has its own durability.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from millstream.clients.fsync import make_durable, sync, sync_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Storage(Protocol):
    """A folder. Paths are relative to it, with `/`."""

    @property
    def url(self) -> str: ...
    @property
    def durable(self) -> bool: ...
    def child(self, path: str) -> Storage: ...
    def exists(self, path: str = "") -> bool: ...
    def read(self, path: str) -> bytes | None: ...
    def put(self, path: str, data: bytes) -> None: ...
    def put_once(self, path: str, data: bytes) -> bool: ...
    def names(self, path: str = "") -> list[str]: ...
    def files(self, path: str = "") -> list[str]: ...
    def size(self, path: str = "") -> int: ...
    def rename(self, old: str, new: str) -> None: ...
    def make(self) -> None: ...
    def sync(self, paths: Iterable[str]) -> None: ...
    def delete(self, path: str = "") -> None: ...


def make_private(folder: Path) -> Path:
    """A folder that only its owner can read, for files that contain rows; an existing folder is not changed."""
    if not folder.is_dir():
        make_durable(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with suppress(PermissionError):
            sync(folder.parent)
    return folder


def is_local(url: str) -> bool:
    return urlsplit(url).scheme in {"", "file"}


def open_storage(url: str, spark: SparkSession | None = None, durable: bool = True) -> Storage:
    """The folder at a URL. A Hadoop file system needs a running Spark."""
    if is_local(url):
        return LocalStorage(Path(url.removeprefix("file://")).absolute(), durable)
    if spark is None:
        raise ValueError(f"`{url}` can only be opened while Spark runs")
    return HadoopStorage(url.rstrip("/"), spark, durable)


class LocalStorage:
    """A folder of this machine."""

    def __init__(self, root: Path, durable: bool = True) -> None:
        self.root, self.durable = root, durable

    @property
    def url(self) -> str:
        return str(self.root)

    def child(self, path: str) -> LocalStorage:
        return LocalStorage(self.root / path, self.durable)

    def exists(self, path: str = "") -> bool:
        return (self.root / path).exists()

    def read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, path: str, data: bytes) -> None:
        self._temporary(path, data).replace(self.root / path)
        self._sync_folder(path)

    def put_once(self, path: str, data: bytes) -> bool:
        temporary = self._temporary(path, data)
        try:
            os.link(temporary, self.root / path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        self._sync_folder(path)
        return True

    def names(self, path: str = "") -> list[str]:
        folder = self.root / path
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def files(self, path: str = "") -> list[str]:
        folder = self.root / path  # walked, not globbed: a folder that disappears meanwhile is not an error
        found = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
        return sorted(entry.relative_to(folder).as_posix() for entry in found)

    def size(self, path: str = "") -> int:
        """Bytes of all files below."""
        return sum(entry.stat().st_size for entry in (self.root / path).rglob("*") if entry.is_file())

    def rename(self, old: str, new: str) -> None:
        target = self.root / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).replace(target)

    def make(self) -> None:
        """Create the folder itself, if it is missing."""
        if self.durable:
            make_durable(self.root)
        else:
            self.root.mkdir(parents=True, exist_ok=True)

    def sync(self, paths: Iterable[str]) -> None:
        """Sync existing files, also those of other writers, and the folders between them and this one."""
        if self.durable:
            sync_below(self.root, [self.root / path for path in paths])

    def delete(self, path: str = "") -> None:
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def _temporary(self, path: str, data: bytes) -> Path:
        target = self.root / path
        LocalStorage(target.parent, self.durable).make()
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if self.durable:
                os.fsync(file.fileno())
        return temporary

    def _sync_folder(self, path: str) -> None:
        if self.durable:
            sync((self.root / path).parent)


class HadoopStorage:
    """A folder of a Hadoop file system: `hdfs://`, `s3a://`, `gs://`."""

    def __init__(self, url: str, spark: SparkSession, durable: bool = True) -> None:
        self._url, self._spark, self.durable = url, spark, durable
        jvm: Any = spark._jvm
        self._jvm = jvm
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._system = self._path("").getFileSystem(configuration)

    @property
    def url(self) -> str:
        return self._url

    def child(self, path: str) -> HadoopStorage:
        return HadoopStorage(f"{self._url}/{path}", self._spark, self.durable)

    def exists(self, path: str = "") -> bool:
        return bool(self._system.exists(self._path(path)))

    def read(self, path: str) -> bytes | None:
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def put(self, path: str, data: bytes) -> None:
        self._write(path, data)

    def put_once(self, path: str, data: bytes) -> bool:
        temporary = str(PurePosixPath(path).with_name(f".{PurePosixPath(path).name}.{uuid.uuid4().hex[:12]}.tmp"))
        if self.exists(path):
            return False
        self._write(temporary, data)
        renamed = bool(self._system.rename(self._path(temporary), self._path(path)))
        if not renamed:
            self.delete(temporary)
        return renamed

    def names(self, path: str = "") -> list[str]:
        if not self.exists(path):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(path)))

    def files(self, path: str = "") -> list[str]:
        found = []
        for name in self.names(path):
            below = f"{path}/{name}".lstrip("/")
            if self._system.getFileStatus(self._path(below)).isDirectory():
                found += [f"{name}/{deeper}" for deeper in self.files(below)]
            else:
                found.append(name)
        return sorted(found)

    def size(self, path: str = "") -> int:
        """Bytes of all files below."""
        return int(self._system.getContentSummary(self._path(path)).getLength()) if self.exists(path) else 0

    def rename(self, old: str, new: str) -> None:
        self._system.mkdirs(self._path(str(PurePosixPath(new).parent)))
        if not self._system.rename(self._path(old), self._path(new)):
            raise OSError(f"cannot rename {old} to {new} in {self._url}")

    def make(self) -> None:
        """Create the folder itself, if it is missing."""
        self._system.mkdirs(self._path(""))

    def sync(self, paths: Iterable[str]) -> None:
        """Does nothing: this file system decides how durable a closed file is."""

    def delete(self, path: str = "") -> None:
        self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._url}/{path}" if path else self._url)

    def _write(self, path: str, data: bytes) -> None:
        stream = self._system.create(self._path(path), True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
