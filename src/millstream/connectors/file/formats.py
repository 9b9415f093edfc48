"""The file formats, and the Spark options of each that avoid lost or guessed values; the user's options override them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

_ALIASES = {"ndjson": "json", "jsonl": "json"}
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_LOCAL_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"

ReadFormat = Annotated[
    Literal["csv", "json", "parquet", "avro", "orc", "text"],
    BeforeValidator(lambda value: _ALIASES.get(value, value) if isinstance(value, str) else value),
]
WriteFormat = Annotated[
    Literal["parquet", "json", "csv", "avro", "orc"],
    BeforeValidator(lambda value: _ALIASES.get(value, value) if isinstance(value, str) else value),
]


def _texts(value: Any) -> Any:
    """Spark needs `header: true` and `maxColumns: 5` as texts."""
    if not isinstance(value, dict):
        return value
    return {name: _text(option) for name, option in value.items()}


def _text(option: Any) -> Any:
    if isinstance(option, bool):
        return str(option).lower()
    return str(option) if isinstance(option, int | float) else option


FormatOptions = Annotated[dict[str, str], BeforeValidator(_texts)]
"""Options of Spark's reader or writer for the format."""

_QUOTES = {"escape": '"'}
"""A quote inside quotes is doubled, as RFC 4180 and most programs do; Spark's own default is a backslash."""
EXPENSIVE = frozenset({"csv", "json", "text", "avro"})
"""Formats whose parsing costs more than caching the rows."""

ROWS_CAN_BE_BAD = frozenset({"csv", "json"})
"""Formats that are read row by row; in the others a file is valid or invalid as a whole."""

READING: dict[str, dict[str, str]] = {
    # `columnPruning` off: a row that is too short is found even when its last columns are not selected
    "csv": {"header": "true", "columnPruning": "false", **_QUOTES},
}
INFERRING: dict[str, dict[str, str]] = {
    "csv": {"header": "true", "inferSchema": "true", **_QUOTES},
    "json": {"mode": "DROPMALFORMED"},
    "parquet": {"mergeSchema": "true"},
    "orc": {"mergeSchema": "true"},
}
# by default Spark writes times in milliseconds and omits nulls
_TIMES = {"timestampFormat": _TIME, "timestampNTZFormat": _LOCAL_TIME}
WRITING: dict[str, dict[str, str]] = {
    "csv": {"header": "true", **_QUOTES, **_TIMES},
    "json": {"ignoreNullFields": "false", **_TIMES},
}
NO_MARKER = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Hadoop's `_SUCCESS` file would be removed with the staging folder; making it takes time for nothing."""
# bytes of shuffled rows per byte of the file; measured with files of average compressibility
SHUFFLED_PER_BYTE = {"json": 0.5, "csv": 0.7}


def extras_of(format_name: str) -> tuple[str, ...]:
    return ("avro",) if format_name == "avro" else ()
