"""Declarations of a process function's states, with their Arrow types.

A state is one column of the bucket's state table. With a `ttl` every value has the time at which it was written, and is dropped when it is
older. This module is pickled to Python's workers (`pickling.py`), so it imports nothing of Millstream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class State:
    """One state per key. `ttl`: drop a value that was not written for this long, by the clock of the epochs."""

    type: str
    ttl: str | None = None
    kind: ClassVar[str] = ""

    @property
    def ttl_ms(self) -> int | None:
        if self.ttl is None:
            return None
        match = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)", self.ttl.strip())
        if match is None:
            raise ValueError(f"`{self.ttl}` is not a duration; write a number and ms, s, m, h or d")
        return int(match[1]) * _MILLISECONDS[match[2]]


@dataclass(frozen=True)
class ValueState(State):
    """One value per key."""

    kind: ClassVar[str] = "value"


@dataclass(frozen=True)
class ListState(State):
    """A list of values per key."""

    kind: ClassVar[str] = "list"


@dataclass(frozen=True)
class MapState(State):
    """Values by a second key, per key: `MapState("int64", key="string")`."""

    key: str = "string"
    kind: ClassVar[str] = "map"
