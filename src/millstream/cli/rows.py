"""Rows as a table of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def as_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Columns with aligned values, below their names."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    return "\n".join("  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
