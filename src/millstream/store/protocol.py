"""A small store of named values next to a pipeline: metadata, state of plugins, ledgers of targets that cannot store their own.

Values are JSON. Namespaces separate users: one per node, `ledger` for the engine. `put_many` is one round trip and atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One value, and when it was written."""

    namespace: str
    key: str
    value: Any
    updated_at: str


class Store(Protocol):
    """Where values are kept."""

    def get(self, namespace: str, key: str) -> Any | None: ...
    def put_many(self, namespace: str, values: Mapping[str, Any]) -> None: ...
    def list(self, namespace: str | None = None, prefix: str = "") -> list[Entry]: ...
    def delete(self, namespace: str, key: str | None = None) -> int:
        """The number of deleted values; without a key, all of the namespace."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Namespace:
    """A store, restricted to one namespace."""

    store: Store
    name: str

    def get(self, key: str) -> Any | None:
        return self.store.get(self.name, key)

    def put(self, key: str, value: Any) -> None:
        self.store.put_many(self.name, {key: value})

    def put_many(self, values: Mapping[str, Any]) -> None:
        self.store.put_many(self.name, values)

    def list(self, prefix: str = "") -> list[Entry]:
        return self.store.list(self.name, prefix)

    def delete(self, key: str) -> bool:
        return self.store.delete(self.name, key) > 0
