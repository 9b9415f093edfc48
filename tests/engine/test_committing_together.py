"""Which sinks commit as one, in which order; and whose entry a ledger outside of the target is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream.connectors.blackhole.sink import BlackholeSink
from millstream.connectors.postgres.sink import PostgresSink
from millstream.engine.epochs import _grouped
from millstream.engine.keptledger import KeptLedger
from millstream.plan.components import Epoch, LedgerEntry
from millstream.plan.nodes import Node
from millstream.state.sqlite import SqliteStore


def test_groups_commit_in_the_place_of_their_first_member() -> None:
    def sink(name: str, group: str | None = None) -> Any:
        component = PostgresSink(database="d", table=name, commit_group=group) if group is not None else BlackholeSink()
        return Node(name, component), None, None

    works = [sink("a"), sink("b", "one"), sink("c"), sink("d", "two"), sink("e", "one"), sink("f", ""), sink("g", "")]
    grouped = [[node.name for node, _, _ in works] for works in _grouped(works)]
    assert grouped == [["a"], ["b", "e"], ["c"], ["d"], ["f"], ["g"]]


def test_an_entry_belongs_to_one_sink_of_one_query(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    KeptLedger(store, "query", "sink").write(Epoch("query", "sink", 3, "digest", ""))
    assert KeptLedger(store, "query", "sink").read() == LedgerEntry(3, "digest")
    assert KeptLedger(store, "query", "other").read() is None
    assert KeptLedger(store, "other", "sink").read() is None
