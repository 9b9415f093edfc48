"""Verifies a checkpoint: every entry of every log is readable, none is missing in between, and the state of the last committed epoch is
complete (a snapshot, and every changelog from it up to that epoch).

Ledgers of sinks are not read here: they are compared when a run begins. All damage is reported, and not only the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

from millstream.checkpoint.incremental import IncrementalState
from millstream.checkpoint.inventory import operators
from millstream.checkpoint.layout import OWN, Checkpoint, QueryCheckpoint, damage_at
from millstream.checkpoint.state_files import StateStore
from millstream.errors import Diagnostic, RunError


def damages(checkpoint: Checkpoint) -> list[Diagnostic]:
    """One diagnostic per damage; none when the checkpoint is intact."""
    found = [*_own_files(checkpoint)]
    for name in checkpoint.queries():
        query = checkpoint.query(name)
        found += [*_logs(query), *_state(query), *_incremental_state(checkpoint, query)]
    return found


def _own_files(checkpoint: Checkpoint) -> Iterator[Diagnostic]:
    storage = checkpoint.storage
    if not storage.exists(f"{OWN}/pipeline.json"):
        yield damage_at(f"{storage.url}/{OWN}/pipeline.json", "it is missing")
    notes = ("plans", "finished", "delivered")
    folders = [("", ["pipeline.json"])] + [(f"{folder}/", storage.names(f"{OWN}/{folder}")) for folder in notes]
    for path in [f"{OWN}/{folder}{name}" for folder, names in folders for name in names if name.endswith(".json")]:
        yield from _complaint(partial(checkpoint.read_json, path))


def _logs(query: QueryCheckpoint) -> Iterator[Diagnostic]:
    """Planned and committed epochs: each is readable, none is missing between the first and the last."""
    offsets, commits = _epochs(query, "offsets"), _epochs(query, "commits")
    if offsets and not query.storage.exists("metadata"):
        yield damage_at(f"{query.url}/metadata", "it is missing")
    yield from _complaint(query.query_id)
    for epoch in offsets:
        yield from _complaint(partial(query.entry, epoch))
    for epoch in commits:
        if not _is_commit(query.storage.read(f"commits/{epoch}") or b""):
            yield damage_at(f"{query.url}/commits/{epoch}", "it is empty or cut off")
    yield from _gaps(query, offsets, commits)


def _gaps(query: QueryCheckpoint, offsets: list[int], commits: list[int]) -> Iterator[Diagnostic]:
    """Old epochs are removed from the beginning of both logs; any other gap is damage."""
    first = min(offsets, default=0)
    last = max(offsets, default=-1)
    needed = {*range(first, last + 1), *(epoch for epoch in commits if epoch >= first)}
    for epoch in sorted(needed - {*offsets}):
        yield damage_at(f"{query.url}/offsets/{epoch}", "it is missing, and the epoch is committed or followed by another")
    begun = min(commits, default=first)
    for epoch in sorted({*range(max(first, begun), max(last, max(commits, default=-1)))} - {*commits}):
        yield damage_at(f"{query.url}/commits/{epoch}", "it is missing, and a later epoch is there")


def _epochs(query: QueryCheckpoint, log: str) -> list[int]:
    return sorted(int(name) for name in query.storage.names(log) if name.isdigit())


def _state(query: QueryCheckpoint) -> Iterator[Diagnostic]:
    """The version after the last committed epoch, for every operator, partition and store."""
    version = query.last_committed() + 1
    if version <= 0:
        return
    try:
        found = operators(query.storage)
    except RunError as error:
        yield from error.diagnostics
        return
    for operator in found:
        for partition in range(operator.partitions):
            for store in operator.stores:
                yield from StateStore(query.storage, operator, partition, store).damages(version)


def _incremental_state(checkpoint: Checkpoint, query: QueryCheckpoint) -> Iterator[Diagnostic]:
    """The state of incremental nodes after the last committed epoch."""
    storage, committed = checkpoint.incremental(query.name), query.last_committed()
    if committed >= 0 and storage.names():
        yield from IncrementalState(storage).damages(committed)


def _is_commit(data: bytes) -> bool:
    head, _, body = data.decode(errors="replace").partition("\n")
    try:
        return head.startswith("v") and isinstance(json.loads(body or "{}"), dict)
    except ValueError:
        return False


def _complaint(read: Callable[[], object]) -> Iterator[Diagnostic]:
    try:
        read()
    except RunError as error:
        yield from error.diagnostics
