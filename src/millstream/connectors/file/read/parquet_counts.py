"""Counts rows of Parquet files by their footers. Spark skips row groups that a filter excludes, and does not count them."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

from millstream.clients.storage import is_local
from millstream.connectors.file.read.paths import normal
from millstream.connectors.file.read.recorded_files import recorded_files
from millstream.plan.components import Progress

SKIPPING = frozenset({"parquet", "orc"})
"""Formats with statistics, which Spark uses to skip rows."""
_MOST = 10_000
"""The most footers that are read for the count of one epoch."""
_AT_ONCE = 8


def count_rows(progress: Progress, pinned: Collection[str] | None) -> int | None:
    """The rows of the epoch's files; None when there are too many files, or when they are not local."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    noted = recorded_files(progress.log, progress.start, progress.end)
    files = None if noted is None else [url for url, _ in noted]
    if files is None or len(files) > _MOST or not all(map(is_local, files)):
        return None
    wanted = [file for file in files if pinned is None or normal(file) in pinned]
    paths = [Path(unquote(urlsplit(file).path)) for file in wanted]
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return sum(pool.map(lambda path: int(pq.read_metadata(path).num_rows), paths))
    except (OSError, pa.ArrowException):  # a file that was removed, or that is not readable
        return None
