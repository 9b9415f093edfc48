"""Several pipelines on one Spark: one JVM, and one session per pipeline, so that views, functions and settings are separate.

Each pipeline runs in its own thread, with its own checkpoint, lease and report. The first pipeline that needs the JVM starts it, and the
JVM logs into that pipeline's checkpoint. When the JVM dies, all pipelines fail; the first that restarts opens a new JVM after the others
have released theirs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.engine.engine import SparkEngine, preload
from millstream.engine.sessions import open_shared
from millstream.errors import MillstreamError, SetupError
from millstream.jvm.session import Session
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology

Outcome = Report | BaseException
_PARTITIONS = "spark.sql.shuffle.partitions"


class SharedSession:
    """One Spark for several pipelines. It is opened on first use."""

    def __init__(self, topologies: Sequence[Topology]) -> None:
        self._topologies = tuple(topologies)
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._lent = 0
        self._failure: MillstreamError | None = None

    def lend(self, topology: Topology, options: RunOptions) -> Session:
        """A session for one pipeline; closing it returns it."""
        with self._changed:
            before = self._session
            base = self._open(topology, options)
            self._lent += 1
        try:
            own = base.spark.newSession()
            partitions = topology.settings.state_partitions or base.spark.conf.get(_PARTITIONS)
            own.conf.set(_PARTITIONS, str(partitions))
        except BaseException:
            self._give_back()
            raise
        return replace(base, spark=own, startup=None if base is before else base.startup, archive=None, give_back=self._give_back)

    def close(self) -> None:
        """Stop Spark. No session may be in use."""
        with self._changed:
            session, self._session = self._session, None
            if session is not None:
                session.close()

    def _open(self, topology: Topology, options: RunOptions) -> Session:
        while self._session is not None and not _alive(self._session) and self._lent:
            self._changed.wait()
        if self._session is not None and not _alive(self._session):
            session, self._session = self._session, None
            session.close()
        if self._failure is not None:
            raise self._failure
        if self._session is None:
            try:
                self._session = open_shared(self._topologies, topology, options.tell, preload, options.log_format)
            except SetupError as error:  # the others would fail in the same way
                self._failure = error
                raise
        return self._session

    def _give_back(self) -> None:
        with self._changed:
            self._lent -= 1
            self._changed.notify_all()


def run_together(jobs: Sequence[tuple[Topology, RunOptions]], ended: Callable[[int, Outcome], None]) -> None:
    """Run all jobs to their end. A failure does not affect the others. `ended` is called with the index and the outcome of each job when
    it ends.
    """
    shared = SharedSession([topology for topology, _ in jobs])
    one_by_one = threading.Lock()

    def go(index: int, topology: Topology, options: RunOptions) -> None:
        outcome: Outcome
        try:
            outcome = SparkEngine(shared=shared).run(topology, options)
        except BaseException as error:  # noqa: BLE001 — the caller reports it, also where user code calls sys.exit
            outcome = error
        with one_by_one:
            ended(index, outcome)

    threads = [threading.Thread(target=go, args=(index, *job), name=job[0].name, daemon=True) for index, job in enumerate(jobs)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # the main thread handles signals in between
    finally:
        shared.close()


def _alive(session: Session) -> bool:
    return session.jvm is not None and session.jvm.alive
