"""Verifies the checksums that Spark keeps next to state files: CRC-32C and the size, as JSON.

Python has no CRC-32C, and one in pure Python is slow. So the size is always compared, and the checksum only for files up to a megabyte, as
changelogs are.
"""

from __future__ import annotations

import json
from functools import lru_cache

_LARGEST = 1 << 20
_POLYNOMIAL = 0x82F63B78


def mismatch(data: bytes, checksum: bytes | None) -> str:
    """What is wrong with a file according to its checksum; empty when nothing is wrong or there is no checksum."""
    if checksum is None:
        return "" if data else "it is empty"
    try:
        found = json.loads(checksum)
        size, value, algorithm = int(found["mainFileSize"]), int(found["value"]), str(found["algorithm"])
    except (ValueError, KeyError, TypeError):
        return "its checksum cannot be read"
    if len(data) != size:
        return f"it has {len(data)} bytes instead of {size}"
    if algorithm == "CRC32C" and size <= _LARGEST and crc32c(data) != value & 0xFFFFFFFF:
        return "its contents differ from what was written"
    return ""


def crc32c(data: bytes) -> int:
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    return tuple(_entry(byte) for byte in range(256))


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value
