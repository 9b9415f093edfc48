"""The epochs that the targets of a query's sinks hold: read once per start, then updated with every commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.checkpoint.layout import QueryCheckpoint
from millstream.engine.lowering.nodes import Lowering
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch, KeepsLedger, LedgerEntry, Sink
from millstream.plan.nodes import SinkNode
from millstream.store.protocol import Store


@dataclass
class Ledgers:
    """The ledgers of one query's sinks."""

    checkpoint: QueryCheckpoint
    lowering: Lowering
    entries: dict[str, LedgerEntry | None] = field(default_factory=dict)
    _readers: dict[str, Sink] = field(default_factory=dict)
    """Sink → the component whose run object has read its ledger."""

    def epoch_of(self, sink: SinkNode, number: int, digest: str, clock: str = "") -> Epoch:
        return Epoch(self.checkpoint.query_id(), sink.name, number, digest, clock)

    def answers(self, sink: SinkNode) -> bool:
        """Whether a later run can find out which epoch the target holds."""
        if not sink.component.holds_ledger:
            return self.lowering.store is not None
        return sink.component.ledger_lasts and isinstance(self.lowering.sink(sink), KeepsLedger)

    def recall(self, sink: SinkNode, epoch: Epoch) -> LedgerEntry | None:
        """The target's ledger entry when a run begins."""
        if fallback := self._fallback(sink, epoch):
            return fallback.read()
        run = self.lowering.sink(sink)
        return run.recall(self.lowering.spark, epoch) if isinstance(run, KeepsLedger) else None

    def holds(self, sink: SinkNode, epoch: Epoch) -> bool:
        """Whether the target holds the epoch. Such an epoch must not be written again."""
        if self._readers.get(sink.name) is not sink.component:  # the run object of another plan reads for itself, and claims its lanes
            self.entries[sink.name], self._readers[sink.name] = self._read(sink, epoch), sink.component
        held = self.entries[sink.name]
        if held is None or held.epoch < epoch.number:
            return False
        if held.epoch == epoch.number and held.digest == epoch.digest:
            return True
        raise RunError(self._other_history(sink, held, epoch))

    def record_commit(self, sink: SinkNode, epoch: Epoch) -> None:
        """Record that the target holds the epoch now."""
        self.entries[sink.name] = LedgerEntry(epoch.number, epoch.digest)
        if fallback := self._fallback(sink, epoch):
            fallback.write(epoch)

    def _read(self, sink: SinkNode, epoch: Epoch) -> LedgerEntry | None:
        if fallback := self._fallback(sink, epoch):
            return fallback.read()
        run = self.lowering.sink(sink)
        return run.ledger(self.lowering.spark, epoch) if isinstance(run, KeepsLedger) else None

    def _fallback(self, sink: SinkNode, epoch: Epoch) -> FallbackLedger | None:
        store = self.lowering.store
        return FallbackLedger(store, epoch.query, sink.name) if store and not sink.component.holds_ledger else None

    def _other_history(self, sink: SinkNode, held: LedgerEntry, epoch: Epoch) -> Diagnostic:
        message = f"sink `{sink.name}` already holds epoch {held.epoch}, but the checkpoint is at epoch {epoch.number} of another history"
        detail = "the checkpoint was restored from an older copy, or its epochs have other boundaries; nothing was written"
        help_ = f"restore both from the same time, or `--reset {self.checkpoint.name}` with an empty target"
        return Diagnostic("MS055", message, sink.span, detail=detail, help=help_)


_NAMESPACE = "ledger"


@dataclass(frozen=True, slots=True)
class FallbackLedger:
    """The ledger entry of a target that cannot store one. It is written to the pipeline's store right after the target has the rows. A
    crash between the two writes the epoch again: at least once, with a short gap instead of a whole epoch.
    """

    store: Store
    query: str
    sink: str

    @property
    def key(self) -> str:
        return f"{self.sink}/{self.query}"

    def read(self) -> LedgerEntry | None:
        found = self.store.get(_NAMESPACE, self.key)
        return LedgerEntry(found["epoch"], found["digest"]) if found else None

    def write(self, epoch: Epoch) -> None:
        self.store.put_many(_NAMESPACE, {self.key: {"epoch": epoch.number, "digest": epoch.digest}})
