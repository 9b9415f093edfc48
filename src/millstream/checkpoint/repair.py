"""Repairs the end of Spark's logs after a power cut: files with a name but without contents.

Everything that a sink or a later epoch relies on was synced before (`durability.py`). So an empty or truncated file is the last one of its
kind, and nothing has used it. It is removed, and Spark writes it again:
    offsets/N    the epoch was never staged; it is planned again
    commits/N    the epoch is repeated, and the ledgers recognise it
    sources/0/N  the files are found again
    state        a snapshot is only a shortcut: the previous one and the changelogs since then give the same state
    metadata, and all state where no epoch is planned: nothing was ever staged; the query begins again
Other damaged files stay and are reported. If a disk lost synced data, a ledger with another digest refuses the epoch.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

from millstream.checkpoint.layout import QueryCheckpoint
from millstream.clients.storage import LocalStorage
from millstream.errors import RunError

_ZIP = re.compile(r"(\d+)(?:_[^.]*)?\.zip")


def remove_unfinished(query: QueryCheckpoint) -> list[str]:
    """Remove unfinished files and return their paths. Only local file systems can show partial files."""
    storage, removed = query.storage, list[str]()
    if not isinstance(storage, LocalStorage):
        return []
    for look in (_offsets, _commits, _notes, _beginnings):
        found = look(query)
        for path in found:
            storage.delete(path)
        removed += found
    found = [path for folder in _stores(storage) for path in _snapshots(storage, folder)]
    for path in found:
        storage.delete(path)
    return removed + found


def _offsets(query: QueryCheckpoint) -> list[str]:
    planned = query.last_planned()
    begun = planned <= query.last_committed() or query.has_staged(planned)
    return [f"offsets/{planned}"] if not begun and _is_cut(query.storage.read(f"offsets/{planned}")) else []


def _commits(query: QueryCheckpoint) -> list[str]:
    """A commit is synced before the next epoch is staged: if it is missing, the next epoch was planned at most."""
    committed, planned = query.last_committed(), query.last_planned()
    if committed < 0 or not _is_cut(query.storage.read(f"commits/{committed}")) or planned not in (committed, committed + 1):
        return []
    if planned == committed:
        return [f"commits/{committed}"]
    return [] if query.has_staged(planned) else [f"offsets/{planned}", f"commits/{committed}"]


def _notes(query: QueryCheckpoint) -> list[str]:
    """Empty source logs that no planned epoch uses."""
    planned, found = query.last_planned(), list[str]()
    try:
        offsets = query.entry(planned).offsets if planned >= 0 else ()
    except RunError:  # `examine` reports it
        return []
    for index in query.storage.names("sources"):
        offset = offsets[int(index)] if index.isdigit() and int(index) < len(offsets) else None
        used = offset.get("logOffset") if isinstance(offset, dict) else None
        for name in query.storage.names(f"sources/{index}"):
            number = name.removesuffix(".compact")
            free = planned < 0 or (isinstance(used, int) and number.isdigit() and int(number) > used)
            if free and _blank(query.storage.read(f"sources/{index}/{name}")):
                found.append(f"sources/{index}/{name}")
    return found


def _beginnings(query: QueryCheckpoint) -> list[str]:
    """Files of a query that has never planned an epoch. Spark does not start with state that has no epoch."""
    if query.last_planned() >= 0 or query.last_committed() >= 0:
        return []
    nameless = query.storage.exists("metadata") and _blank(query.storage.read("metadata"))
    return ["metadata"] * nameless + ["state"] * query.storage.exists("state")


def _stores(storage: LocalStorage) -> list[str]:
    return sorted({path.rpartition("/")[0] for path in storage.files("state") if _ZIP.fullmatch(path.rpartition("/")[2])})


def _snapshots(storage: LocalStorage, folder: str) -> list[str]:
    """Unfinished snapshots at the end, where the previous snapshot and the changelogs since then exist."""
    names = storage.names(f"state/{folder}")
    changes = {int(name.partition(".")[0].partition("_")[0]) for name in names if name.endswith(".changelog") and name[0].isdigit()}
    zips = sorted(((int(match[1]), name) for name in names if (match := _ZIP.fullmatch(name))), reverse=True)
    found: list[str] = []
    for place, (version, name) in enumerate(zips):
        if _is_whole(storage, f"state/{folder}", name):
            break
        before = zips[place + 1][0] if place + 1 < len(zips) else 0
        if not {*range(before + 1, version + 1)} <= changes:
            break
        found.append(f"state/{folder}/{name}")
    return found


def _is_whole(storage: LocalStorage, folder: str, name: str) -> bool:
    """Whether a snapshot is readable and its tables have the recorded sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(storage.read(f"{folder}/{name}") or b"")) as archive:
            tables = json.loads(archive.read("metadata").partition(b"\n")[2]).get("sstFiles", [])
    except (zipfile.BadZipFile, KeyError, ValueError):
        return False
    return all(_size(storage.root / folder / "SSTs" / table["dfsSstFileName"]) == table["sizeBytes"] for table in tables)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _blank(data: bytes | None) -> bool:
    return not (data or b"").strip(b"\0")


def _is_cut(data: bytes | None) -> bool:
    """Whether a log entry is truncated. One with another header is of another Spark version."""
    if _blank(data):
        return True
    lines = (data or b"").split(b"\n")
    try:
        for line in lines[1:]:
            json.loads(line if line not in (b"", b"-") else b"0")
    except ValueError:
        return lines[0] == b"v1"
    return lines == [b"v1"]
