"""Lists the committed files of a file sink, also while the sink is writing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.clients.storage import Storage, open_storage
from millstream.connectors.file.write.manifests import Manifests, Move, keys
from millstream.errors import Diagnostic, SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKS = 5


def committed_files(path: str, spark: SparkSession | None = None) -> list[str]:
    """The committed files under a sink's path, in the order of their epochs; each epoch completely, also while the sink writes. A path
    that is not local needs a running session.

    A file that is committed but not yet renamed is listed at its current path. If it moves before it is opened, list again.
    """
    root = open_storage(path, spark)
    commits = heapq.merge(*(_commits(root, key) for key in keys(root)))
    moves = [move for _, _, files in commits for move in files]
    there = set(root.files())  # listed after the commits were read: their files are here or have moved since
    return [f"{root.url}/{place}" for move in moves if (place := _place(root, there, move))]


def _commits(root: Storage, key: str) -> Iterator[tuple[int, str, tuple[Move, ...]]]:
    return ((entry.epoch, key, entry.files) for entry in Manifests(root, key).all())


def _place(root: Storage, there: set[str], move: Move) -> str:
    """The path of a committed file; empty when it was removed. It moves once, and never back."""
    if move.target in there:
        return move.target
    if root.exists(move.source):
        return move.source
    return move.target if root.exists(move.target) else ""


def read_committed(path: str) -> pa.Table:
    """The committed rows of local Parquet files, including the columns of directories; no columns when nothing is committed."""
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):  # a file has moved since it was listed
            return _read(path)
    return _read(path)


def _read(path: str) -> pa.Table:
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    root, files = open_storage(path), committed_files(path)
    if not files:
        return pa.table({})
    if other := next((file for file in files if not file.endswith(".parquet")), ""):
        message = f"`read_committed` reads Parquet, and `{path}` has `{PurePosixPath(other).name}`"
        raise SpecError(Diagnostic("MS008", message, help=f"`committed_files({path!r})` lists the files of any format"))
    options = ds.FileSystemFactoryOptions(partition_base_dir=root.url, partitioning=ds.HivePartitioning.discover())
    factory = ds.FileSystemDatasetFactory(LocalFileSystem(), files, ds.ParquetFileFormat(), options)
    # columns may differ between files: the table has all of them
    return factory.finish(factory.inspect(promote_options="permissive", fragments=None)).to_table()
