"""Finds the files: a directory, one file or a pattern, and the `key=value` directories in their paths.

Spark lists the files, here and in the stream, with the same names: the URLs of `_metadata.file_path`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millstream.clients.storage import is_local
from millstream.errors import Diagnostic, RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GLOB = re.compile(r"[*?\[\]{}\\]")
_KEYS = re.compile(r"([^/=]+)=([^/]*)(?=/)")


def is_pattern(path: str) -> bool:
    return bool(_GLOB.search(path))


@dataclass(frozen=True, slots=True)
class InputPath:
    """A path in the form that Spark needs."""

    pattern: str
    """The path to load."""
    base: str
    """The directory's URL; empty for one file or a pattern."""

    @property
    def shallow(self) -> str:
        """A pattern for URLs of files in the directory itself, or in its `key=value` directories."""
        return f"^{re.escape(self.base)}/([^/=]+=[^/]*/)*[^/]+$"


def locate(spark: SparkSession, path: str, node: str) -> InputPath:
    """Examine the path; a RunError when it does not exist or cannot be read."""
    path = str(Path(path.removeprefix("file://")).absolute()) if is_local(path) else path
    require_readable(path, node)
    jvm: Any = spark._jvm
    target = jvm.org.apache.hadoop.fs.Path(path)
    system = target.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(target):
        if is_pattern(path):
            return InputPath(path, "")
        raise RunError(Diagnostic("MS060", f"`{node}` finds nothing to read: `{path}` does not exist"))
    if system.getFileStatus(target).isFile():
        folder, _, name = path.rpartition("/")
        return InputPath(f"{_literal(folder)}/{_one_file(name)}", "")
    return InputPath(_literal(path), normal(system.makeQualified(target).toUri().toString()).rstrip("/"))


def list_files(spark: SparkSession, place: InputPath, options: dict[str, str], recursive: bool) -> list[str]:
    """The files that a stream over the same place would read now."""
    from pyspark.errors import AnalysisException

    reader = spark.read.format("binaryFile").options(**options).option("recursiveFileLookup", "true")
    try:
        files = sorted(normal(file) for file in reader.load(place.pattern).inputFiles())
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":  # a pattern without a match
            return []
        raise
    return [file for file in files if recursive or not place.base or re.match(place.shallow, file)]


def require_readable(path: str, node: str) -> None:
    local = Path(path.removeprefix("file://"))
    if is_local(path) and local.exists() and not os.access(local, os.R_OK | (os.X_OK if local.is_dir() else 0)):
        raise RunError(Diagnostic("MS061", f"`{node}` has no permission to read `{path}`", help="change its permissions, or the path"))


def normal(url: str) -> str:
    """`file:///tmp` and `file:/tmp` are the same; `_metadata.file_path` uses the latter."""
    return re.sub(r"^file:/+", "file:/", url)


def literal_path(url: str) -> str:
    """A file's URL as a path that Spark does not interpret as a pattern."""
    return _literal(unquote(url))


def directory_values(files: Iterable[str], base: str) -> dict[str, list[str]]:
    """The `key=value` directories below the base: key → its values."""
    found: dict[str, list[str]] = {}
    for file in files:
        below = file[len(base) :] if base and file.startswith(base) else file
        for key, value in _KEYS.findall(below):
            found.setdefault(decode_name(key), []).append(decode_name(value))
    return found


def decode_name(text: str) -> str:
    """Decode twice: Hive escapes the name of a directory, and the URL escapes that again."""
    return unquote(unquote(text))


def total_size(path: str, limit: int) -> int:
    """Bytes under a local path; stops above the limit, and returns more than the limit when it cannot read."""
    if not is_local(path) or is_pattern(path):
        return limit + 1
    root, total = Path(path.removeprefix("file://")), 0
    for file in [root] if root.is_file() else root.rglob("*"):
        total += file.stat().st_size if file.is_file() else 4096
        if total > limit:
            break
    return total


def _literal(path: str) -> str:
    return _GLOB.sub(lambda match: f"\\{match[0]}", path)


def _one_file(name: str) -> str:
    """A pattern that only this file matches: Spark's stream accepts directories and patterns, but no single file."""
    escaped = _literal(name)
    return re.sub(r"(?<!\\)[A-Za-z0-9]", lambda match: f"[{match[0]}]", escaped, count=1)
