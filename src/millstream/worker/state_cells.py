"""Cells: the state of one key as plain Python values, for a process function to read and write.

A cell is made from the column's value and returns the new one. With a time to live, entries have the time at which they were written, and
expired entries are dropped when the cell is made. This module is pickled to Python's workers (`pickling.py`), so it imports nothing of
Millstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class Cell:
    """The value of one key in one state."""

    __slots__ = ("_now", "_ttl")

    def __init__(self, ttl: int | None, now: int) -> None:
        self._ttl, self._now = ttl, now

    def _alive(self, entry: Any) -> bool:
        return self._ttl is None or entry["at"] + self._ttl > self._now

    def _with_time(self, value: Any) -> Any:
        return value if self._ttl is None else {"v": value, "at": self._now}

    def _plain(self, entry: Any) -> Any:
        return entry if self._ttl is None else entry["v"]

    def dump(self) -> Any:
        """The column's new value; None when nothing is left."""
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
        self._entry = None if value is None else self._with_time(value)

    def clear(self) -> None:
        self._entry = None

    def dump(self) -> Any:
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
        self._entries.append(self._with_time(value))

    def extend(self, values: Iterable[Any]) -> None:
        self._entries.extend(self._with_time(value) for value in values)

    def set(self, values: Iterable[Any]) -> None:
        self._entries = [self._with_time(value) for value in values]

    def clear(self) -> None:
        self._entries = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def __len__(self) -> int:
        return len(self._entries)

    def dump(self) -> Any:
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
        self._entries[key] = self._with_time(value)

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

    def dump(self) -> Any:
        return list(self._entries.items()) or None

    def times(self) -> list[int]:
        return [entry["at"] for entry in self._entries.values()]


_CELLS: dict[str, Any] = {"value": ValueCell, "list": ListCell, "map": MapCell}


class UnknownStateError(KeyError):
    """A function uses a state that its class does not declare."""

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
