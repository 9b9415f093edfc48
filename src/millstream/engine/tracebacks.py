"""What a Python traceback inside a Spark failure says: the exception, and the last line of the user's own code."""

from __future__ import annotations

import re

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n\s+(?!File)([^\n]+))?')


def raised(text: str, before: int) -> str:
    """The line that names the exception: the last one before a mark, else the last at all."""
    return _last_line(text[:before]) or _last_line(text)


def user_frame(text: str) -> str:
    """Where the user's own code was, with the line; empty when it is not among the frames."""
    frames = [match for match in _FRAME.finditer(text) if not _foreign(match[1])]
    if not frames:
        return ""
    file, line, name, code = frames[-1].groups()
    return f"{file}:{line} in {name}" + (f"\n    {code.strip()}" if code else "")


def _last_line(text: str) -> str:
    lines = [
        line.strip()
        for line in text.rstrip().splitlines()
        if re.match(r"^\s*[\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Invalid|Cancelled)\b", line)
    ]
    return lines[-1][:300] if lines else ""


def _foreign(file: str) -> bool:
    return (
        "/pyspark/" in file or "/millstream/" in file or "pyspark.zip" in file or file.startswith("pyarrow/") or file.startswith("<frozen")
    )
