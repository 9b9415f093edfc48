"""Opens a checkpoint that no run is using, by its pipeline or by its path.

Local checkpoints are read without Spark where possible. Reading state, or a checkpoint on another file system, needs a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.inventory import owner
from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.checkpoint.lease import take
from millstream.clients.storage import Storage, is_local, open_storage
from millstream.engine.sessions import open_session
from millstream.errors import Diagnostic, MillstreamError, UsageError
from millstream.jvm.kept_session import dismiss
from millstream.jvm.session import Session, SessionOptions, begin
from millstream.plan.cutting import cut
from millstream.plan.run_options import checkpoint_of
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class CheckpointPlace:
    """Where a checkpoint is, and the pipeline that it belongs to, if known."""

    url: str
    topology: Topology | None = None

    @classmethod
    def of(cls, topology: Topology) -> CheckpointPlace:
        return cls(checkpoint_of(topology), topology)


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint, and the session that can read its state, if there is one."""

    checkpoint: Checkpoint
    spark: SparkSession | None = None

    def storage(self, url: str) -> Storage:
        """Another folder on the same file system."""
        return open_storage(url, self.spark)


@contextmanager
def open_checkpoint(place: CheckpointPlace, *, spark: bool = False, held: bool = True) -> Iterator[OpenCheckpoint]:
    """The checkpoint, with its lease unless `held` is false (read only). Starts Spark when `spark` is set or the file system needs it."""
    if not spark and is_local(place.url):
        with _with_lease(OpenCheckpoint(_checkpoint(open_storage(place.url), place)), held) as found:
            yield found
        return
    if is_local(place.url):
        _checkpoint(open_storage(place.url), place)  # refused before Spark starts, which takes seconds
    with _session(place) as session:
        opened_ = OpenCheckpoint(_checkpoint(open_storage(place.url, session.spark), place), session.spark)
        with _with_lease(opened_, held) as found, _translate_failures(place):
            yield found


@contextmanager
def _translate_failures(place: CheckpointPlace) -> Iterator[None]:
    """Translate Spark's failures into diagnostics while the session still exists."""
    try:
        yield
    except MillstreamError:
        raise
    except Exception as error:
        from millstream.engine.failures import Translator

        translator = Translator((), place.topology.name if place.topology else place.url, Redactor([]))
        raise translator.translate(error, "") from error


@contextmanager
def _with_lease(found: OpenCheckpoint, held: bool) -> Iterator[OpenCheckpoint]:
    storage = found.checkpoint.storage
    lease = take(storage.child(OWN), storage.url) if held else None
    try:
        yield found
    finally:
        if lease is not None:
            lease.release()


def _checkpoint(storage: Storage, place: CheckpointPlace) -> Checkpoint:
    name = place.topology.name if place.topology else ""
    checkpoint = Checkpoint(storage, name)
    if not storage.exists(OWN) and not storage.names("queries"):
        what = f"pipeline `{name}` has not run yet: there is no checkpoint" if name else "there is no checkpoint"
        raise UsageError(Diagnostic("MS052", f"{what} at `{storage.url}`", help="give a pipeline's file, or the folder of a checkpoint"))
    checkpoint.require_whole()
    return Checkpoint(storage, name or owner(checkpoint))


def _session(place: CheckpointPlace) -> Session:
    if place.topology is not None:
        return open_session(place.topology, cut(place.topology))
    dismiss()
    starting = begin(SessionOptions(app_name="millstream", profile="short"))
    try:
        return starting.finish()
    except BaseException:
        starting.abandon()
        raise
