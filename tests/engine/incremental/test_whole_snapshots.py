"""A snapshot that was cut short is no copy: an older whole one, and the changes after it, are kept and used."""

from __future__ import annotations

from pathlib import Path

from millstream.checkpoint.incremental import Entry, IncrementalState, Kind
from millstream.clients.storage import LocalStorage


def _write(state: IncrementalState, kind: Kind, epoch: int, *, missing: int = 0) -> None:
    folder = f"{epoch}-a"
    state.storage.put(f"{kind}/{folder}/rows.parquet", b"rows")
    state.put(Entry(kind, epoch, "digest", "plan", folder, state.storage.size(f"{kind}/{folder}") + missing, ()))


def test_what_replaces_a_broken_snapshot_is_not_deleted(tmp_path: Path) -> None:
    state = IncrementalState(LocalStorage(tmp_path))
    for epoch in range(7):
        _write(state, "log", epoch)
    _write(state, "snapshots", 1)
    _write(state, "snapshots", 3, missing=1)
    _write(state, "snapshots", 5)
    state.forget()
    assert state.epochs("snapshots") == [1, 3, 5]
    assert state.epochs("log") == [2, 3, 4, 5, 6]
    assert [(entry.kind, entry.epoch) for entry in state.path_to(4)] == [("snapshots", 1), ("log", 2), ("log", 3), ("log", 4)]
    assert state.holds(range(3, 7)) and not state.holds(range(1, 3))
