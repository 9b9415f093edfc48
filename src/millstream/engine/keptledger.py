"""The ledger of a target that cannot hold its own: written to the pipeline's store right after the target has the rows.

Between the two a crash can fall, and the epoch comes again: at least once, with a small gap instead of a whole epoch's time.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.plan.components import Epoch, LedgerEntry
from millstream.state.store import Store

NAMESPACE = "ledger"


@dataclass(frozen=True, slots=True)
class KeptLedger:
    """One sink's entry."""

    store: Store
    query: str
    sink: str

    @property
    def key(self) -> str:
        return f"{self.sink}/{self.query}"

    def read(self) -> LedgerEntry | None:
        found = self.store.get(NAMESPACE, self.key)
        return LedgerEntry(found["epoch"], found["digest"]) if found else None

    def write(self, epoch: Epoch) -> None:
        self.store.put_many(NAMESPACE, {self.key: {"epoch": epoch.number, "digest": epoch.digest}})
