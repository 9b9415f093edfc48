"""Records where the user's code created a node, so that a later failure can point at that line."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

from millstream.errors import Span
from millstream.secrets import mask_line

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def caller() -> Span | None:
    """The nearest line outside of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).rstrip("\n")
    column = len(text) - len(text.lstrip()) + 1
    return Span(file, line, column, max(len(text) + 1, column + 1), mask_line(text))
