"""Recognises failures of Spark's file readers and writers."""

from __future__ import annotations

import re

from millstream.formats.malformed import ADVICE, is_malformed
from millstream.plan.components.failure import Failure

_READ_FILE = re.compile(r"(?:while reading file|CSV file:) (?:file:/*(?=/))?(\S+?)\.?(?:\s|$)")
_VALUE = re.compile(r"For input string: \"([^\"\n]{1,160})\"|Text '([^'\n]{1,160})' could not be parsed")
_UNWRITABLE = re.compile(
    r"Mkdirs failed|Not a directory|NotDirectoryException|ParentNotDirectoryException|FileAlreadyExistsException|Read-only file system"
    r"|FileNotFoundError"
)


def recognise_source(failure: str) -> Failure | None:
    if "CSV header does not conform" in failure or "Number of column in CSV header" in failure:
        return _other_header(failure)
    if is_malformed(failure):
        return _malformed_row(failure)
    if "PATH_NOT_FOUND" in failure or "FileNotFoundException" in failure:
        return Failure("MS060", f"{{node}}: {_first_line(failure)}")
    return None


def recognise_sink(failure: str) -> Failure | None:
    return Failure("MS068", f"{{node}} could not write: {_first_line(failure)}") if _UNWRITABLE.search(failure) else None


def _malformed_row(failure: str) -> Failure:
    file, value = _READ_FILE.search(failure), _VALUE.search(failure)
    record = re.search(r"(?:parsing|record): (.{1,160})", failure)
    parts = [
        f"file: {file[1]}" if file else "",
        f"row, as far as it could be read: {record[1].removesuffix('.')}" if record else "",
        f"value: {value[1] or value[2]}" if value else "",
    ]
    message = "a row of {node} does not fit its format or schema"
    return Failure("MS062", message, detail="\n".join(part for part in parts if part), help=ADVICE)


def _other_header(failure: str) -> Failure:
    """A later CSV file with another header than the first one."""
    file = _READ_FILE.search(failure)
    found, expected = re.search(r"^ ?Header: (.+)$", failure, re.MULTILINE), re.search(r"^ ?Schema: (.+)$", failure, re.MULTILINE)
    counts = re.search(r"Header length: (\d+), schema size: (\d+)", failure)
    parts = [
        f"file: {file[1]}" if file else "",
        f"found: {found[1]}" if found else f"found: {counts[1]} columns" if counts else "",
        f"expected: {expected[1]}" if expected else f"expected: {counts[2]} columns" if counts else "",
    ]
    help_ = "remove the file, or give it the header and the delimiter of the others"
    return Failure("MS163", "the CSV header does not fit {node}", detail="\n".join(part for part in parts if part), help=help_)


def _first_line(failure: str) -> str:
    return next((line.strip()[:300] for line in failure.splitlines() if line.strip()), "no message")
