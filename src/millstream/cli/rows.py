"""Rows as a table of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def as_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Columns with aligned values, below their names."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    return "\n".join("  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def plain(value: Any) -> str:
    """The text of a value that JSON does not know; times as in the samples of a running pipeline."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return plain(value)
    return value if isinstance(value, str) else json.dumps(value, default=plain, ensure_ascii=False)
