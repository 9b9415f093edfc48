"""The rows of an epoch between stage and commit: what each sink has staged, and which sinks commit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from millstream.plan.components import CommitsTogether, Epoch, SinkRun, Staged
from millstream.plan.nodes import SinkNode


@dataclass(frozen=True, slots=True)
class StagedSink:
    """What one sink has staged."""

    node: SinkNode
    run: SinkRun[Any]
    staged: Staged[Any]
    epoch: Epoch


@dataclass(slots=True)
class StagedEpoch:
    """What all sinks of a query have staged."""

    sinks: list[StagedSink] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Sinks that hold the epoch already."""

    @property
    def rows(self) -> dict[str, int]:
        """Sink → the rows that it is about to commit, where it counts them."""
        return {sink.node.name: sink.staged.rows for sink in self.sinks if sink.staged.rows is not None}

    @property
    def bytes(self) -> dict[str, int]:
        """Sink → the bytes that it is about to commit, where it knows them."""
        return {sink.node.name: sink.staged.bytes for sink in self.sinks if sink.staged.bytes is not None}

    def had_no_rows(self, node: str) -> bool:
        """Whether a sink, or a node that a sink reads, is known to have had none."""
        empty = [sink.node for sink in self.sinks if sink.staged.rows == 0 and not sink.node.isolates]
        return any(node == sink.name or node in sink.inputs for sink in empty)

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """If the body fails before the first commit, abort everything that was staged."""
        try:
            yield
        except BaseException:
            for sink in self.sinks:
                with suppress(Exception):  # the failure itself is reported; the next start removes what is left
                    sink.run.abort(sink.staged, sink.epoch)
            raise

    def groups(self) -> list[list[StagedSink]]:
        """The sinks that commit together: a group takes the position of its first member; every other sink is alone."""
        found: dict[str, list[StagedSink]] = {}
        for sink in self.sinks:
            component = sink.node.component
            found.setdefault(f"{component.type}:{component.group}" if component.group else f"sink {sink.node.name}", []).append(sink)
        return list(found.values())


def commit_group(group: list[StagedSink]) -> None:
    """Make the rows of all sinks of a group visible at the same moment."""
    first = group[0]
    if len(group) == 1:
        first.run.commit(first.staged, first.epoch)
        return
    assert isinstance(first.run, CommitsTogether)
    first.run.commit_together([(sink.staged, sink.epoch) for sink in group])
