"""Durations and sizes as people write them (`5m`, `128MB`): one plain value, and the same text again for YAML."""

from __future__ import annotations

import re
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_SPANS = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
_LONG = {"millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d"}


def _with_unit(unit: str, kind: str) -> Any:
    """A validator that names the missing unit of a bare number."""

    def check(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise PydanticCustomError(kind, "`{number}` has no unit; write `{number}{unit}`", {"number": value, "unit": unit})
        return value

    return core_schema.no_info_before_validator_function(check, core_schema.str_schema())


class Duration(str):
    """A span of time, kept as written: `500ms`, `10s`, `5m`, `1h`, `2d`."""

    __slots__ = ("milliseconds",)
    milliseconds: int

    def __new__(cls, text: str) -> Duration:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)", text.strip())
        unit = match[2].lower() if match else ""
        unit = _LONG.get(unit.removesuffix("s"), unit)
        if match and match[2] == "M":
            raise PydanticCustomError("duration", "`{text}` may mean minutes (`m`) or months, which have no fixed length", {"text": text})
        if not match or unit not in _MILLISECONDS:
            raise PydanticCustomError("duration", "`{text}` is not a duration; write a number and ms, s, m, h or d", {"text": text})
        self = super().__new__(cls, text.strip())
        self.milliseconds = round(float(match[1]) * _MILLISECONDS[unit])
        return self

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls, _with_unit("s", "duration"), serialization=core_schema.to_string_ser_schema()
        )


class Size(str):
    """A number of bytes, kept as written: `64KB`, `128MB`, `1GB`."""

    __slots__ = ("bytes",)
    bytes: int

    def __new__(cls, text: str) -> Size:
        match = re.fullmatch(r"(\d+)\s*([KMG]?B)", text.strip().upper())
        if not match:
            raise PydanticCustomError("size", "`{text}` is not a size; write a number and KB, MB or GB", {"text": text})
        self = super().__new__(cls, text.strip())
        self.bytes = int(match[1]) * _BYTES[match[2]]
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, _with_unit("MB", "size"), serialization=core_schema.to_string_ser_schema())


def duration_of(seconds: float) -> str:
    """A duration in whole units, such as `5 min`."""
    size, unit = next((size, unit) for size, unit in _SPANS if seconds >= 2 * size or size == 1)
    return f"{seconds / size:,.0f} {unit}"


def size_of(count: int) -> str:
    """A number of bytes as text, with a unit."""
    size, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
