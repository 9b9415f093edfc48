"""A run, as those see it who look at it: its plan, its facts, and what can be asked of it."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from millstream.checkpoint import savepoint
from millstream.checkpoint.history import History
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.savepoint import Copied
from millstream.clients.storage import is_local, open_storage
from millstream.errors import Diagnostic, RunError, nearest
from millstream.inspector.samples import known_schemas, require_samples
from millstream.observe.gate import Gate
from millstream.observe.rates import Rates
from millstream.observe.recorder import Recorder
from millstream.observe.watches import MOST
from millstream.plan.secret_references import secrets_of
from millstream.plan.settings import RealTime
from millstream.plan.topology import Topology
from millstream.secrets import Redactor
from millstream.sql.check.row_filters import refuse_filter

_PATIENCE = 300.0
"""How long a savepoint waits for running epochs, in seconds."""


@dataclass(frozen=True)
class AttendedRun:
    """One run of a pipeline."""

    topology: Topology
    checkpoint: Checkpoint
    recorder: Recorder
    gate: Gate
    stopping: threading.Event
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    began: float = field(default_factory=time.time)
    process: int = field(default_factory=os.getpid)
    ended_at: float | None = None
    """When it ended; None while it runs."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when there is nothing more to tell, its failure included."""
    rates: Rates = field(default_factory=Rates)
    """Rows per second of each node."""
    saving: threading.Lock = field(default_factory=threading.Lock)
    redact: Redactor = field(init=False)
    """Applied to everything that is shown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "redact", Redactor(secrets_of(self.topology)))

    @property
    def name(self) -> str:
        return self.topology.name

    def history(self) -> History:
        return History(self.checkpoint, self.redact)

    def count_rates(self) -> None:
        """Take note of the counts, several times in ten seconds."""
        nodes = self.recorder.snapshot().nodes
        self.rates.add({name: max(facts.rows_in or 0, facts.rows_out or 0) for name, facts in nodes.items()}, time.monotonic())

    def stop(self) -> None:
        """Stop after the running epochs."""
        self.stopping.set()

    def pause(self) -> None:
        """Let the running epochs end, and begin no other."""
        self._require_epochs("paused")
        if not self.gate.is_paused:
            self.gate.pause()
            self.recorder.note("paused: no epoch begins until `millstream resume`")

    def resume(self) -> None:
        if self.gate.is_paused:
            self.gate.resume()
            self.recorder.note("resumed")

    def save(self, folder: str) -> Copied:
        """Copy the checkpoint between two epochs."""
        self._require_epochs("copied while it runs")
        if not is_local(folder) or not is_local(self.checkpoint.storage.url):
            message = "a savepoint of a running pipeline goes from a local checkpoint to a local folder"
            raise RunError(Diagnostic("MS185", message, help="stop the pipeline and use `millstream checkpoint copy`"))
        with self.saving, self.gate.closed(_PATIENCE) as ended:
            if self.recorder.snapshot().state != "running" or self.ended.is_set():
                message = f"`{self.name}` is not between two epochs: it is starting or ending"
                raise RunError(Diagnostic("MS185", message, help="try again, or copy the checkpoint of the stopped pipeline"))
            if not ended:
                message = f"the running epochs have not ended in {_PATIENCE:g} s, so no savepoint was taken"
                raise RunError(Diagnostic("MS185", message, help="try again, or make epochs smaller: `max_rows_per_epoch`"))
            try:
                copied = savepoint.copy(self.checkpoint, open_storage(folder), running=True)
            except OSError as error:
                message = f"the savepoint cannot be written to `{folder}`: {error.strerror or error}"
                raise RunError(Diagnostic("MS185", message, help="name a folder in which the user of the pipeline may write")) from None
        self.recorder.note(f"savepoint in {copied.url}")
        return copied

    def watch(self, name: str, where: str = "", *, begins: bool = False) -> str:
        """Have the rows of a node sampled for some seconds, those that pass a filter. The node that is sampled: for a sink its input."""
        node = self.topology.by_name.get(name)
        if node is None:
            raise RunError(Diagnostic("MS189", f"`{self.name}` has no node `{name}`", help=nearest(name, self.topology.by_name)))
        shown = node.inputs[0] if node.kind == "sink" and node.inputs else name
        if shown not in self._watchable:  # who watches asks again every few seconds
            require_samples(self.topology, shown)
            self._watchable.add(shown)
        if where and (refused := refuse_filter(where, self.schemas.get(shown))):
            raise RunError(refused)
        if not self.recorder.watches.ask(shown, where, begins=begins):
            message = f"rows are sampled for {MOST} readers or filters already"
            raise RunError(Diagnostic("MS189", message, help="a wish ends ten seconds after its reader has left: try again then"))
        return shown

    @cached_property
    def _watchable(self) -> set[str]:
        """The nodes whose rows can be sampled, of those that somebody has asked for."""
        return set()

    @property
    def schemas(self) -> Mapping[str, pa.Schema | None]:
        """The columns of each node, as far as they are known without Spark. A source may pin its own after the start."""
        known = self._schemas or known_schemas(self.topology, self.checkpoint)
        if all(schema is not None for schema in known.values()):
            self._schemas.update(known)
        return known

    @cached_property
    def _schemas(self) -> dict[str, pa.Schema | None]:
        return {}

    def _require_epochs(self, what: str) -> None:
        if isinstance(self.topology.settings.trigger, RealTime):
            message = f"`{self.name}` runs in real-time mode and cannot be {what}: it has no pause between epochs"
            raise RunError(Diagnostic("MS185", message, help=f"`millstream stop {self.name}` ends it with its epoch"))
