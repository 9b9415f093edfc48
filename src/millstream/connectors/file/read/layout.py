"""Decisions about a source's files at its first start, stored in the checkpoint: the files of a bounded source, and the columns from
`key=value` directories.

Spark can find the directories' columns itself, but it does so in every epoch: a stream that starts on an empty directory would silently put
values into the wrong columns. So the files are read without them, and the columns come from each file's path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from millstream.clients.storage import Storage
from millstream.connectors.file.read.paths import InputPath, directory_values

PATH = "_metadata.file_path"
_FILES, _DIRECTORIES = "files.json", "directories.json"


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The decisions."""

    files: tuple[str, ...] | None
    """The files of a bounded source."""
    directories: tuple[str, ...]
    """Columns that a file's directories may contain."""


def pin(storage: Storage, files: Iterable[str], place: InputPath, schema: pa.Schema, bounded: bool) -> FileLayout:
    """Decide, or return the stored decision. A source that starts on an empty directory looks for every column in the path."""
    files = list(files)
    directories = _once(storage, _DIRECTORIES, list(decide(files, place, schema).directories))
    return FileLayout(tuple(_once(storage, _FILES, files)) if bounded else None, tuple(directories))


def decide(files: list[str], place: InputPath, schema: pa.Schema) -> FileLayout:
    """The decision for these files now."""
    keys = list(directory_values(files, place.base)) if files else schema.names
    return FileLayout(None, tuple(name for name in schema.names if name in keys and not pa.types.is_nested(schema.field(name).type)))


def pinned_files(storage: Storage) -> list[str] | None:
    data = storage.read(_FILES)
    return None if data is None else list(json.loads(data))


def conditions(layout: FileLayout, place: InputPath, recursive: bool) -> list[str]:
    """Conditions on the files to read. Conditions on the path alone are evaluated while listing: an excluded file is never opened."""
    found = []
    if layout.files is not None:
        found.append(f"{PATH} IN ({', '.join(_text(file) for file in layout.files)})")
    if not recursive and place.base:
        found.append(f"{PATH} RLIKE {_text(place.shallow)}")
    return found


def from_directory(name: str, spark_type: str) -> str:
    """A column's value in the file's path: decoded twice, because it was encoded twice; null when missing."""
    key = re.escape(name.replace(" ", "%20"))
    raw = f"nullif(nullif(regexp_extract({PATH}, {_text(f'^.*/{key}=([^/]*)/')}, 1), ''), '__HIVE_DEFAULT_PARTITION__')"
    once = f"coalesce(try_url_decode(replace({raw}, '+', '%2B')), {raw})"
    twice = f"coalesce(try_url_decode(replace({once}, '+', '%2B')), {once})"
    return f"CAST(CASE WHEN {raw} LIKE '%\\%%' THEN {twice} ELSE {raw} END AS {spark_type})"


def directory_types(values: dict[str, list[str]]) -> dict[str, pa.DataType]:
    """Integer and date types where all values fit; otherwise text, so that `007` is not changed."""
    return {key: _type_of([value for value in found if value != "__HIVE_DEFAULT_PARTITION__"]) for key, found in values.items()}


def _type_of(values: list[str]) -> pa.DataType:
    if values and all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value) for value in values):
        return pa.int64()
    return pa.date32() if values and all(_is_date(value) for value in values) else pa.string()


def _is_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _once(storage: Storage, name: str, value: list[str]) -> list[str]:
    data = storage.read(name)
    if data is None:
        storage.put_once(name, json.dumps(value).encode())
        data = storage.read(name)
    return list(json.loads(data or b"[]"))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
