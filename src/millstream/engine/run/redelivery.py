"""Redelivery: committed epochs are repeated for targets that lack them, with the same offsets, rows and digest.

Spark repeats the last planned epoch of a checkpoint if that epoch is not committed. So a second checkpoint is made next to the real one,
with the same identity, the sources' logs, and the state before the first missing epoch. It receives the offset entries one by one, and
Spark runs one epoch for each. The real checkpoint does not change. After an interruption the ledgers of the targets show the progress, and
the next run continues from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from pyspark.errors import PySparkException

from millstream.checkpoint.layout import OWN, Checkpoint, QueryCheckpoint
from millstream.engine.epoch.loop import EpochLoop
from millstream.engine.epoch.status import Repetition
from millstream.engine.lowering.nodes import Lowering
from millstream.engine.run.callback import for_each_epoch
from millstream.engine.time.watermarks import Watermarks
from millstream.plan.cutting import QueryPlan

_FOLDER = f"{OWN}/redelivery"
_TICK_MS = 200


@dataclass(frozen=True)
class Redelivery:
    """Missing epochs of one query."""

    plan: QueryPlan
    checkpoint: Checkpoint
    lowering: Lowering
    tick: Callable[[], None] = lambda: None
    """Called while an epoch is repeated, so that progress can be shown."""

    def run(self, missing: Mapping[str, range], loop_on: Callable[[QueryCheckpoint, Repetition], EpochLoop]) -> bool:
        """Deliver to each sink the epochs that it lacks; False when the run was stopped before the end."""
        first, stop = min(epochs.start for epochs in missing.values()), max(epochs.stop for epochs in missing.values())
        scratch = self._scratch(first)
        for epoch in range(first, stop):
            self._copy(scratch, f"offsets/{epoch}")
            loop = loop_on(scratch, Repetition(missing=missing))
            if not self._repeat(loop, scratch):
                return False
        self.checkpoint.storage.delete(_FOLDER)
        return True

    def _scratch(self, first: int) -> QueryCheckpoint:
        """A checkpoint whose last committed epoch is the one before `first`."""
        discard_scratch(self.checkpoint)
        scratch, real = QueryCheckpoint(self.checkpoint.storage.child(_FOLDER), self.plan.name), self._real
        notes = [f"sources/{name}" for name in real.storage.files("sources") if not PurePosixPath(name).name.startswith(".")]
        before = [f"offsets/{first - 1}", f"commits/{first - 1}"] if first else []
        for path in ["metadata", *notes, *before, *state_before(real, first)]:
            self._copy(scratch, path)
        return scratch

    def _repeat(self, loop: EpochLoop, scratch: QueryCheckpoint) -> bool:
        stream = self.lowering.build_stream(self.plan)
        loop.watermarks = Watermarks(self.plan, stream.clocks) if stream.clocks else None
        loop.maintenance = stream.maintenance
        writer = for_each_epoch(stream.frame.writeStream.outputMode(self.plan.output_mode), self.lowering.spark, loop)
        writer = writer.option("checkpointLocation", scratch.url).queryName(self.plan.name)
        handle = writer.trigger(once=True).start()
        loop.query.set(handle._jsq)
        try:
            with suppress(PySparkException):
                while not handle._jsq.awaitTermination(_TICK_MS):
                    self.tick()
        finally:
            loop.query.clear()
            loop.status.abandoned = True
            if handle.isActive:  # interrupted: no epoch may run without the lease
                handle.stop()
            if stream.maintenance is not None:
                stream.maintenance.close()
        if loop.status.refused:
            return False
        error = loop.status.failure or handle.exception()
        if error is not None:
            raise error
        return True

    @property
    def _real(self) -> QueryCheckpoint:
        return self.checkpoint.query(self.plan.name)

    def _copy(self, scratch: QueryCheckpoint, path: str) -> None:
        data = self._real.storage.read(path)
        if data is not None:
            scratch.storage.put(path, data)


def discard_scratch(checkpoint: Checkpoint) -> None:
    """Remove the files of an interrupted redelivery: the ledgers of the targets show its progress."""
    if checkpoint.storage.exists(_FOLDER):
        checkpoint.storage.delete(_FOLDER)


def state_before(query: QueryCheckpoint, epoch: int) -> list[str]:
    """The state files that an epoch begins with: their version is the epoch's number."""
    files = [f"state/{name}" for name in query.storage.files("state")]
    return [path for path in files if not PurePosixPath(path).name.startswith(".") and (_version(path) or 0) <= epoch]


def state_is_kept(query: QueryCheckpoint, epoch: int) -> bool:
    """Whether every state store still has the version that an epoch begins with; there may be none."""
    found: dict[str, set[int]] = {}
    for path in query.storage.files("state"):
        if (version := _version(path)) is not None:
            found.setdefault(str(PurePosixPath(path).parent), set()).add(version)
    return not epoch or all(epoch in versions for versions in found.values())


def _version(path: str) -> int | None:
    """`12.changelog`, `12.zip` and `12_<id>.zip` have version 12."""
    name = PurePosixPath(path)
    number = name.stem.partition("_")[0]
    return int(number) if name.suffix in {".changelog", ".zip", ".delta", ".snapshot"} and number.isdigit() else None
