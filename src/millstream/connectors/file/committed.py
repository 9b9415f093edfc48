"""What a file sink has committed: for readers that want no more and no less, also while the sink is writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.clients.storage import open_storage
from millstream.connectors.file.manifests import Manifests, keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def committed_files(path: str, spark: SparkSession | None = None) -> list[str]:
    """The committed files under a sink's path, in the order of their epochs. A path that is not local needs a running session.

    A file whose commit is younger than its rename is listed in the place where it still is. Should it move before it is opened, list
    again.
    """
    root = open_storage(path, spark)
    there = set(root.files())
    entries = sorted(
        ((entry, key) for key in keys(root) for entry in Manifests(root, key).all()), key=lambda pair: (pair[0].epoch, pair[1])
    )
    places = (move.target if move.target in there else move.source for entry, _ in entries for move in entry.files)
    return [f"{root.url}/{place}" for place in places if place in there]


def read_committed(path: str) -> pa.Table:
    """The committed rows of Parquet files on this machine, directories' columns included; no columns when nothing is committed."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    root, files = open_storage(path), committed_files(path)
    if not files:
        return pa.table({})
    options = ds.FileSystemFactoryOptions(partition_base_dir=root.url, partitioning=ds.HivePartitioning.discover())
    factory = ds.FileSystemDatasetFactory(LocalFileSystem(), files, ds.ParquetFileFormat(), options)
    # columns may have come and gone over time: the table has all of them
    return factory.finish(factory.inspect(promote_options="permissive", fragments=None)).to_table()
