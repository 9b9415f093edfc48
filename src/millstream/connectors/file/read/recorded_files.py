"""The files that Spark recorded for an epoch when it planned it, and their changes since then.

Spark's log has each file's path and modification time, but not its size: a file that is rewritten with its old time is not detected. Every
tenth entry contains all earlier ones; the others are deleted after a while.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from millstream.clients.storage import Storage
from millstream.connectors.file.read.paths import normal
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import ChangedInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def changes(spark: SparkSession, notes: Storage, start: Any, end: Any, pinned: Collection[str] | None) -> list[ChangedInput]:
    """The files between two offsets that are read, and that were deleted or modified."""
    noted = recorded_files(notes, start, end)
    if noted is None:
        message = f"Spark's log of the files of an epoch is missing in `{notes.url}`, so changes cannot be detected"
        raise RunError(Diagnostic("MS052", message, help="restore the checkpoint from a copy"))
    read = [(url, time) for url, time in noted if pinned is None or normal(url) in pinned]
    now = {url: _modification_time(spark, url) for url, _ in read}
    return [ChangedInput(unquote(url), gone=now[url] is None) for url, time in read if now[url] != time]


def recorded_files(notes: Storage, start: Any, end: Any) -> list[tuple[str, int]] | None:
    """The files between two offsets, each with its modification time; None when some entries are missing."""
    names, found = notes.names(), list[tuple[str, int]]()
    compact = sorted(int(name.partition(".")[0]) for name in names if name.endswith(".compact") and not name.startswith("."))
    for number in range(_number(start) + 1, _number(end) + 1):
        wider = next((each for each in compact if each >= number), number)
        data = notes.read(str(number) if str(number) in names else f"{wider}.compact")
        if data is None:
            return None
        mark = f'"batchId":{number}'  # only relevant lines are parsed
        entries = [json.loads(line) for line in data.decode().splitlines()[1:] if mark in line]
        found += [(entry["path"], int(entry["timestamp"])) for entry in entries if entry["batchId"] == number]
    return found


def _number(offset: Any) -> int:
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    return int(parsed["logOffset"]) if parsed else -1


def _modification_time(spark: SparkSession, url: str) -> int | None:
    """Milliseconds; None when there is no such file."""
    parts = urlsplit(url)
    if parts.scheme in {"", "file"}:
        path = Path(unquote(parts.path))
        return path.stat().st_mtime_ns // 1_000_000 if path.exists() else None
    jvm: Any = spark._jvm
    target = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
    system = target.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    return int(system.getFileStatus(target).getModificationTime()) if system.exists(target) else None
