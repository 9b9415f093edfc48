"""The contents of a checkpoint, read from its files alone: queries, their progress, and the operators that keep state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from millstream.checkpoint.incremental import IncrementalState
from millstream.checkpoint.layout import OWN, Checkpoint, damage_at
from millstream.clients.storage import Storage
from millstream.errors import RunError

_KINDS = {
    "stateStoreSave": "totals",
    "sessionWindowStateStoreSaveExec": "sessions",
    "sessionWindowStateStoreSave": "sessions",
    "symmetricHashJoin": "join",
    "dedupe": "distinct",
    "dedupeWithinWatermark": "distinct",
    "transformWithStateExec": "process",
    "transformWithStateInPySparkExec": "process",
    "flatMapGroupsWithState": "process",
}


@dataclass(frozen=True, slots=True)
class Operator:
    """One of Spark's stateful operators, as its metadata describes it, or an operator of an incremental query."""

    id: int
    name: str
    stores: tuple[str, ...]
    partitions: int
    """0 if the rows can be in any number of partitions."""
    bytes: int
    properties: Any = None
    """For process functions: the names of their state variables."""
    rows: int | None = None
    """None: not counted."""

    @property
    def kind(self) -> str:
        """Spark's operator name, translated."""
        return _KINDS.get(self.name, self.name)

    @property
    def joins(self) -> bool:
        return self.name == "symmetricHashJoin"


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query and its progress."""

    name: str
    planned: int
    """The last planned epoch; -1 when there is none."""
    committed: int
    finished: str | None
    """When a bounded query reached its end."""
    bytes: int
    operators: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Inventory:
    """A whole checkpoint."""

    url: str
    pipeline: str
    bytes: int
    """Without logs."""
    queries: tuple[StoredQuery, ...]


def take_stock(checkpoint: Checkpoint) -> Inventory:
    storage = checkpoint.storage
    queries = tuple(_query(checkpoint, name) for name in checkpoint.queries())
    return Inventory(storage.url, owner(checkpoint), storage.size(OWN) + storage.size("queries"), queries)


def owner(checkpoint: Checkpoint) -> str:
    """The pipeline that owns the checkpoint; empty when it is not recorded."""
    found = checkpoint.read_json(f"{OWN}/pipeline.json") or {}
    return str(found.get("pipeline", ""))


def operators(query: Storage) -> tuple[Operator, ...]:
    """The stateful operators of a query, by their numbers."""
    ids = sorted(int(name) for name in query.names("state") if name.isdigit())
    return tuple(_operator(query, id_) for id_ in ids)


def _query(checkpoint: Checkpoint, name: str) -> StoredQuery:
    query = checkpoint.query(name)
    kept = checkpoint.incremental(name)
    found = (*operators(query.storage), *_incremental(IncrementalState(kept), query.last_committed()))
    size = query.storage.size() + kept.size()
    return StoredQuery(name, query.last_planned(), query.last_committed(), checkpoint.finished_at(name), size, found)


def _incremental(state: IncrementalState, committed: int) -> Iterator[Operator]:
    """The operators of an incremental query that keep rows."""
    if committed < 0 or not state.storage.names("log"):
        return
    for number, stores in groupby(state.sizes(committed), key=lambda store: store.number):
        found = list(stores)
        names, rows, size = tuple(store.name for store in found), sum(store.rows for store in found), sum(store.bytes for store in found)
        yield Operator(number, f"incremental {found[0].operator}", names, 0, size, rows=rows)


def _operator(query: Storage, id_: int) -> Operator:
    path = _metadata(query, f"state/{id_}/_metadata")
    text = (query.read(path) or b"").decode(errors="replace")
    try:
        _, _, body = text.partition("\n")
        found = json.loads(body)
        stores = found["stateStoreInfo"]
        properties = json.loads(found.get("operatorPropertiesJson") or "null")
        names = tuple(str(store["storeName"]) for store in stores)
        partitions = max(int(store["numPartitions"]) for store in stores)
        return Operator(id_, str(found["operatorInfo"]["operatorName"]), names, partitions, query.size(f"state/{id_}"), properties)
    except (ValueError, KeyError, TypeError):
        raise RunError(damage_at(f"{query.url}/{path}", "it does not describe an operator")) from None


def _metadata(query: Storage, folder: str) -> str:
    """Newer operators keep one metadata file per epoch that changed them."""
    versions = [name for name in query.names(f"{folder}/v2") if name.isdigit()]
    return f"{folder}/v2/{max(versions, key=int)}" if versions else f"{folder}/metadata"
