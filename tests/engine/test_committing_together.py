"""Which sinks commit as one, in which order; and whose entry a ledger outside of the target is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream.connectors.blackhole.sink import BlackholeSink
from millstream.connectors.postgres.sink import PostgresSink
from millstream.engine.epoch.ledgers import FallbackLedger
from millstream.engine.epoch.staged import StagedEpoch, StagedSink
from millstream.plan.components import Epoch, LedgerEntry
from millstream.plan.nodes import SinkNode
from millstream.store.sqlite import SqliteStore


def test_groups_commit_in_the_place_of_their_first_member() -> None:
    def sink(name: str, group: str | None = None) -> Any:
        component = PostgresSink(database="d", table=name, commit_group=group) if group is not None else BlackholeSink()
        return StagedSink(SinkNode(name, component), None, None, None)  # type: ignore[arg-type]  # only the node counts here

    works = [sink("a"), sink("b", "one"), sink("c"), sink("d", "two"), sink("e", "one"), sink("f", ""), sink("g", "")]
    grouped = [[sink.node.name for sink in group] for group in StagedEpoch(works).groups()]
    assert grouped == [["a"], ["b", "e"], ["c"], ["d"], ["f"], ["g"]]


def test_an_entry_belongs_to_one_sink_of_one_query(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    FallbackLedger(store, "query", "sink").write(Epoch("query", "sink", 3, "digest", ""))
    assert FallbackLedger(store, "query", "sink").read() == LedgerEntry(3, "digest")
    assert FallbackLedger(store, "query", "other").read() is None
    assert FallbackLedger(store, "other", "sink").read() is None
