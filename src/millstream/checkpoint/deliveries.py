"""Deliveries: the checkpoint records which sinks receive every epoch, and each target's ledger records the last epoch that it holds.

Spark commits an epoch after every sink has committed it. So each of these sinks holds at least Spark's last commit, identified by the
digest of its offset entry. A file is therefore written only when a sink receives its first epoch, and nothing per epoch:
    <checkpoint>/_millstream/delivered/<query>.json   sink → its first epoch and its target; holes that were accepted
The file is written before Spark's commit and is valid only with it: it is never ahead of the target.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.layout import OWN, Checkpoint, QueryCheckpoint
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch, LedgerEntry
from millstream.plan.nodes import SinkNode

Recall = Callable[[SinkNode, Epoch], LedgerEntry | None]


@dataclass(frozen=True, slots=True)
class Lack:
    """Epochs that were committed to a sink and that its target does not hold."""

    sink: SinkNode
    held: int
    """The last epoch that the target holds; -1: none."""
    epochs: range
    before: str = ""
    """The address of the target when it received its last epoch, if known."""

    @property
    def named(self) -> str:
        return _epoch_range(self.epochs[0], self.epochs[-1])

    def diagnostic(self) -> Diagnostic:
        holds = f"the last epoch that it holds is {self.held}" if self.held >= 0 else "it holds none of this query's epochs"
        message = f"the target of sink `{self.sink.name}` lacks {self.named}, which this pipeline has committed; {holds}"
        now = _place(self.sink)
        ways = "`--redeliver` repeats these epochs for it, or `--accept-target` continues without them"
        if self.before and self.before != now:
            detail = f"the rows were written to `{self.before}`, and the target is `{now}` now; nothing was written"
            help_ = f"use that target again (a relative path starts at the working directory); or {ways}"
        else:
            other = f"another target: `{now}`" if now else "another target"
            detail = (
                f"it may have been restored from an older copy, its ledger may have been deleted, or it is {other}; nothing was written"
            )
            help_ = f"restore it, or {ways}"
        return Diagnostic("MS140", message, self.sink.span, detail=detail, help=help_)


def _epoch_range(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _place(sink: SinkNode) -> str:
    return sink.component.address_text


class Deliveries:
    """What one query's sinks have received."""

    def __init__(self, checkpoint: Checkpoint, query: QueryCheckpoint) -> None:
        self._checkpoint, self._query = checkpoint, query
        self._path = f"{OWN}/delivered/{query.name}.json"
        self._note: dict[str, Any] = checkpoint.read_json(self._path) or {"sinks": {}, "holes": {}}
        self._placed: set[str] = set()

    def record(self, sinks: Sequence[SinkNode], epoch: int) -> None:
        """Record that all these sinks have committed an epoch."""
        if all(sink.name in self._placed for sink in sinks):
            return
        known, places = self._note["sinks"], self._note.get("places", {})
        self._placed |= {sink.name for sink in sinks}
        found = {sink.name: _place(sink) for sink in sinks}
        if any(sink.name not in known for sink in sinks) or places != {**places, **found}:
            self._note = {**self._note, "places": {**places, **found}}
            self._write({**{sink.name: epoch for sink in sinks}, **known})

    def keep_only(self, sinks: Iterable[str]) -> None:
        """Forget sinks that are no longer in the pipeline: if one returns, it begins anew."""
        kept = {name: self._note["sinks"][name] for name in sinks if name in self._note["sinks"]}
        if len(kept) < len(self._note["sinks"]):
            self._write(kept)

    def forget(self) -> None:
        if self._note["sinks"]:
            self._write({})

    def accept(self, lacks: Iterable[Lack]) -> None:
        """Continue without these epochs; the holes stay on record."""
        for lack in lacks:
            self._note["holes"].setdefault(lack.sink.name, []).append([lack.epochs[0], lack.epochs[-1]])
            self._note["sinks"][lack.sink.name] = lack.epochs.stop
        self._write(self._note["sinks"])

    def accepted_holes(self, sinks: Iterable[str]) -> list[str]:
        """The holes on record."""
        holes = self._note["holes"]
        return [f"`{sink}` {_epoch_range(first, last)}" for sink in sinks for first, last in holes.get(sink, ())]

    def find_lacks(self, sinks: Iterable[SinkNode], epoch_of: Callable[[SinkNode, int, str], Epoch], recall: Recall) -> list[Lack]:
        """The committed epochs that targets do not hold. A target of another history is refused at once."""
        committed, planned, found = self._query.last_committed(), self._query.last_planned(), []
        next_digest = self._query.entry(committed + 1).digest if planned > committed else ""
        for sink in sinks:
            first = self._note["sinks"].get(sink.name, committed + 1)
            if first > committed:
                continue
            held = recall(sink, epoch_of(sink, committed + 1, next_digest)) or LedgerEntry(-1, "")
            if held == LedgerEntry(committed + 1, next_digest):
                continue
            self._require_history(sink, held, committed)
            if held.epoch < committed:
                missing = range(max(first, held.epoch + 1), committed + 1)
                found.append(Lack(sink, held.epoch, missing, self._note.get("places", {}).get(sink.name, "")))
        return found

    def _require_history(self, sink: SinkNode, held: LedgerEntry, committed: int) -> None:
        """The digest of an epoch that is still in the checkpoint must match."""
        known = held.epoch <= committed and self._query.storage.exists(f"offsets/{held.epoch}")
        if held.epoch <= committed and (not known or self._query.entry(held.epoch).digest == held.digest):
            return
        message = f"sink `{sink.name}` holds epoch {held.epoch} of another history; the checkpoint has committed epoch {committed}"
        detail = "the checkpoint was restored from an older copy, or its epochs have other boundaries; nothing was written"
        help_ = f"restore both from the same time, or `--reset {self._query.name}` with an empty target"
        raise RunError(Diagnostic("MS055", message, sink.span, detail=detail, help=help_))

    def _write(self, sinks: dict[str, int]) -> None:
        self._note = {**self._note, "sinks": sinks}
        self._checkpoint.storage.put(self._path, json.dumps(self._note).encode())
