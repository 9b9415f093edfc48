"""A checkpoint that no run is using, opened for people: by the pipeline that it belongs to, or by its place alone.

Local checkpoints are read without Spark as far as that goes. Reading state, or a checkpoint on another file system, takes a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.clients.storage import Storage, is_local, open_storage
from millstream.engine.checkpoint import OWN, Checkpoint
from millstream.engine.engine import open_session
from millstream.engine.inventory import owner
from millstream.engine.lease import take
from millstream.engine.session import Session, SessionOptions, begin
from millstream.engine.warmth import dismiss
from millstream.errors import Diagnostic, MillstreamError, UsageError
from millstream.plan.cutting import cut
from millstream.plan.running import checkpoint_of
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint is, and the pipeline that it was asked for by."""

    url: str
    topology: Topology | None = None

    @classmethod
    def of(cls, topology: Topology) -> Place:
        return cls(checkpoint_of(topology), topology)


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint, and the session that can read its state where there is one."""

    checkpoint: Checkpoint
    spark: SparkSession | None = None

    def storage(self, url: str) -> Storage:
        """Another folder, opened with the same means."""
        return open_storage(url, self.spark)


@contextmanager
def opened(place: Place, *, spark: bool = False, held: bool = True) -> Iterator[Opened]:
    """The checkpoint, with its lease held unless one only looks. Starts Spark when asked to, or when its file system needs it."""
    if not spark and is_local(place.url):
        with _held(Opened(_checkpoint(open_storage(place.url), place)), held) as found:
            yield found
        return
    if is_local(place.url):
        _checkpoint(open_storage(place.url), place)  # refused before the seconds that Spark takes
    with _session(place) as session:
        opened_ = Opened(_checkpoint(open_storage(place.url, session.spark), place), session.spark)
        with _held(opened_, held) as found, _translated(place):
            yield found


@contextmanager
def _translated(place: Place) -> Iterator[None]:
    """Spark's failures become diagnostics while the session is there to be asked what they mean."""
    try:
        yield
    except MillstreamError:
        raise
    except Exception as error:
        from millstream.engine.failures import translate

        raise translate(error, (), "", Redactor([]), place.topology.name if place.topology else place.url) from error


@contextmanager
def _held(found: Opened, held: bool) -> Iterator[Opened]:
    storage = found.checkpoint.storage
    lease = take(storage.child(OWN), storage.url) if held else None
    try:
        yield found
    finally:
        if lease is not None:
            lease.release()


def _checkpoint(storage: Storage, place: Place) -> Checkpoint:
    name = place.topology.name if place.topology else ""
    checkpoint = Checkpoint(storage, name)
    if not storage.exists(OWN) and not storage.names("queries"):
        what = f"pipeline `{name}` has not run yet: there is no checkpoint" if name else "there is no checkpoint"
        raise UsageError(Diagnostic("MS052", f"{what} at `{storage.url}`", help="give a pipeline's file, or the folder of a checkpoint"))
    checkpoint.require_whole()
    return Checkpoint(storage, name or owner(checkpoint))


def _session(place: Place) -> Session:
    if place.topology is not None:
        return open_session(place.topology, cut(place.topology))
    dismiss()
    starting = begin(SessionOptions(app_name="millstream", profile="short"))
    try:
        return starting.finish()
    except BaseException:
        starting.abandon()
        raise
