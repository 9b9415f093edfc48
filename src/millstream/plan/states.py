"""What a process function remembers: states declared with their Arrow types, and the cells through which it reads and writes them.

A declaration says how a cell is stored in one column of the bucket's state table; a cell is that column's value for one key, as plain
Python. With a `ttl` every value carries the time it was written at, and is gone once that is longer ago.

This module travels to Python's workers (`transforms/shipping.py`), so it imports nothing of Millstream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class State:
    """One thing to remember per key. `ttl`: forget it when it was not written for that long, by the clock of the epochs."""

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
    """Values by a key of their own, per key: `MapState("int64", key="string")`."""

    key: str = "string"
    kind: ClassVar[str] = "map"


class Cell:
    """What one key has in one state."""

    __slots__ = ("_now", "_ttl")

    def __init__(self, ttl: int | None, now: int) -> None:
        self._ttl, self._now = ttl, now

    def _alive(self, entry: Any) -> bool:
        return self._ttl is None or entry["at"] + self._ttl > self._now

    def _stamped(self, value: Any) -> Any:
        return value if self._ttl is None else {"v": value, "at": self._now}

    def _plain(self, entry: Any) -> Any:
        return entry if self._ttl is None else entry["v"]

    def stored(self) -> Any:
        """The column's value; None when there is nothing to keep."""
        raise NotImplementedError

    def times(self) -> list[int]:
        """When the entries were written."""
        raise NotImplementedError


class ValueCell(Cell):
    """One value."""

    __slots__ = ("_entry",)

    def __init__(self, stored: Any, ttl: int | None, now: int) -> None:
        super().__init__(ttl, now)
        self._entry = stored if stored is not None and self._alive(stored) else None

    def get(self, default: Any = None) -> Any:
        return default if self._entry is None else self._plain(self._entry)

    def set(self, value: Any) -> None:
        self._entry = None if value is None else self._stamped(value)

    def clear(self) -> None:
        self._entry = None

    def stored(self) -> Any:
        return self._entry

    def times(self) -> list[int]:
        return [] if self._entry is None else [self._entry["at"]]


class ListCell(Cell):
    """Values in the order in which they were added."""

    __slots__ = ("_entries",)

    def __init__(self, stored: Any, ttl: int | None, now: int) -> None:
        super().__init__(ttl, now)
        self._entries = [entry for entry in stored or () if self._alive(entry)]

    def get(self) -> list[Any]:
        return [self._plain(entry) for entry in self._entries]

    def append(self, value: Any) -> None:
        self._entries.append(self._stamped(value))

    def extend(self, values: Iterable[Any]) -> None:
        self._entries.extend(self._stamped(value) for value in values)

    def set(self, values: Iterable[Any]) -> None:
        self._entries = [self._stamped(value) for value in values]

    def clear(self) -> None:
        self._entries = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def __len__(self) -> int:
        return len(self._entries)

    def stored(self) -> Any:
        return self._entries or None

    def times(self) -> list[int]:
        return [entry["at"] for entry in self._entries]


class MapCell(Cell):
    """Values by key."""

    __slots__ = ("_entries",)

    def __init__(self, stored: Any, ttl: int | None, now: int) -> None:
        super().__init__(ttl, now)
        self._entries = {key: entry for key, entry in stored or () if self._alive(entry)}

    def get(self, key: Any, default: Any = None) -> Any:
        return self._plain(self._entries[key]) if key in self._entries else default

    def set(self, key: Any, value: Any) -> None:
        self._entries[key] = self._stamped(value)

    def remove(self, key: Any) -> None:
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries = {}

    def items(self) -> list[tuple[Any, Any]]:
        return [(key, self._plain(entry)) for key, entry in self._entries.items()]

    def __getitem__(self, key: Any) -> Any:
        return self._plain(self._entries[key])

    __setitem__ = set

    def __contains__(self, key: Any) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def stored(self) -> Any:
        return list(self._entries.items()) or None

    def times(self) -> list[int]:
        return [entry["at"] for entry in self._entries.values()]


_CELLS: dict[str, Any] = {"value": ValueCell, "list": ListCell, "map": MapCell}


class UnknownStateError(KeyError):
    """A function asks for a state that its class does not declare."""

    def __str__(self) -> str:
        return str(self.args[0])


class KeyState(Mapping[str, Any]):
    """The states of one key, by name: `state["total"].get(0)`."""

    __slots__ = ("_cells",)

    def __init__(self, kinds: Mapping[str, tuple[str, int | None]], stored: Mapping[str, Any], now: int) -> None:
        self._cells = {name: _CELLS[kind](stored.get(name), ttl, now) for name, (kind, ttl) in kinds.items()}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name]
        except KeyError:
            known = ", ".join(f"`{known}`" for known in self._cells) or "none"
            raise UnknownStateError(f"there is no state `{name}`; declared: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)
