"""The engine: it takes a plan and returns a report.

The order of steps keeps the start fast. Checks that need no Spark come first (who owns the checkpoint, is the job finished). Then the JVM
starts. PySpark is imported while the JVM starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import is_local, open_storage
from millstream.engine.decisions import decide, find_misjudged, recall, remember
from millstream.engine.run.jobs import is_done
from millstream.engine.run.restarts import Restarts
from millstream.engine.sessions import open_session, open_with, session_options
from millstream.errors import Diagnostic, MillstreamError, PlanMismatchError, RunError, SpecError, TemporaryError, nearest
from millstream.inspector.attendance import attended
from millstream.inspector.attended import AttendedRun
from millstream.jvm.death import death_of
from millstream.jvm.kept_session import lend
from millstream.jvm.session import Session
from millstream.observe.facts import Restart
from millstream.observe.recorder import Recorder
from millstream.observe.report import Report
from millstream.plan.checkpoint_path import home_of
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.run_options import RunOptions, checkpoint_of
from millstream.plan.secret_references import unreadable
from millstream.plan.topology import Topology
from millstream.rules import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.engine.several import SharedSession


Work = Callable[[Session, Recorder, RunOptions], Report]


class SparkEngine:
    """Runs plans on Spark, on its own session or on one that the caller passes."""

    def __init__(self, spark: SparkSession | None = None, *, shared: SharedSession | None = None) -> None:
        self._spark, self._shared = spark, shared
        self._begun_anew = False
        """Whether `--reset` and `--again` have been carried out. A second JVM must not repeat them."""

    def run(self, topology: Topology, options: RunOptions) -> Report:
        """Run until the input ends, the run is stopped, or it fails."""
        try:
            return self._run(topology, options)
        except MillstreamError as error:
            error.diagnostics = tuple(replace(found, help=options.reword(found.help)) for found in error.diagnostics)
            raise

    def _run(self, topology: Topology, options: RunOptions) -> Report:
        checked = () if options.checked else check(topology)
        findings = [finding for finding in checked if finding.level == "error" and not self._may_know(finding)]
        errors = findings or list(unreadable(topology))
        if errors:
            raise SpecError(errors)
        started, url = time.monotonic(), checkpoint_of(topology)
        recorder = Recorder(topology.name)
        if is_local(url):
            checkpoint = Checkpoint(open_storage(url, durable=topology.settings.durable), topology.name)
            lease = checkpoint.claim(home=home_of(topology))
            try:
                topology = recall(topology, checkpoint)
                queries = cut(topology)
                if is_done(topology, queries, checkpoint, options, recorder):
                    return _report(recorder, url, {})
                with _attended(topology, checkpoint, recorder, options):
                    return self._run_with_restarts(
                        topology, queries, recorder, options, partial(self._execute, topology, queries, checkpoint, started)
                    )
            finally:
                lease.release()
        return self._run_with_restarts(topology, cut(topology), recorder, options, partial(self._claim, topology, url, started))

    def _may_know(self, finding: Diagnostic) -> bool:
        """Whether a finding concerns a function that may be registered in the caller's session."""
        return self._spark is not None and finding.code == "MS159"

    def _run_with_restarts(
        self, topology: Topology, queries: tuple[QueryPlan, ...], recorder: Recorder, options: RunOptions, work: Work
    ) -> Report:
        """Run `work` in a session. If the JVM dies for a reason other than memory, start a new one, at most as often as
        `settings.restart` allows.
        """
        restarts, epochs = Restarts(topology.settings.restart), 0
        while True:
            with self._session(topology, queries, options) as session:
                recorder.jvm(session.jvm.process.pid if session.jvm else None)
                try:
                    return work(session, recorder, options)
                except Exception as error:
                    death = death_of(session.jvm, error)
                    if death is None:
                        raise
                    done = sum(facts.epochs for facts in recorder.snapshot().queries.values())
                    if done > epochs:
                        restarts.forget()
                    epochs = done
                    if not isinstance(death, TemporaryError) or not restarts.are_left or options.stop.is_set():
                        recorder.state("failed")
                        raise death from error
            pause = restarts.schedule()
            recorder.state("restarting")
            recorder.restart(Restart("", death.diagnostics[0].message, restarts.count, pause, death.diagnostics[0].code))
            if options.watch is not None:
                options.watch(recorder.snapshot())
            if options.stop.wait(pause):
                recorder.state("stopped")
                return _report(recorder, checkpoint_of(topology), {})
            options = replace(options, reset=(), again=False) if self._begun_anew else options

    def _claim(
        self,
        topology: Topology,
        url: str,
        started: float,
        session: Session,
        recorder: Recorder,
        options: RunOptions,
    ) -> Report:
        """Claim a checkpoint that only Spark can reach: this needs the session."""
        checkpoint = Checkpoint(open_storage(url, session.spark, topology.settings.durable), topology.name)
        lease = checkpoint.claim()
        try:
            topology = recall(topology, checkpoint)
            queries = cut(topology)
            if is_done(topology, queries, checkpoint, options, recorder):
                return _report(recorder, url, dict(session.times))
            with _attended(topology, checkpoint, recorder, options):
                return self._execute(topology, queries, checkpoint, started, session, recorder, options)
        finally:
            lease.release()

    def _execute(
        self,
        topology: Topology,
        queries: tuple[QueryPlan, ...],
        checkpoint: Checkpoint,
        started: float,
        session: Session,
        recorder: Recorder,
        options: RunOptions,
    ) -> Report:
        from millstream.engine.run.execution import Execution

        repeated = _queries_to_repeat(queries, checkpoint, recorder) if options.again else ()
        for name in repeated:
            checkpoint.begin_again(name)
        _reset(queries, checkpoint, (*options.reset, *repeated))
        self._begun_anew = True
        times = dict(session.times)
        for warning in session.diagnostics:
            recorder.note(f"{warning.message}: {warning.help}")
        while True:
            execution = Execution(topology, queries, checkpoint, session.spark, recorder, options)
            try:
                execution.run([query for query in queries if options.redeliver or not checkpoint.finished_at(query.name)])
                break
            except PlanMismatchError as error:
                misjudged = find_misjudged(topology, error)
                if not misjudged:
                    raise
                remember(topology, misjudged, checkpoint)
                topology = decide(topology, misjudged)
                queries = cut(topology)
        times["run"] = time.monotonic() - started - sum(times.values())
        return _report(recorder, checkpoint.storage.url, times)

    def _session(self, topology: Topology, queries: tuple[QueryPlan, ...], options: RunOptions) -> Session:
        if self._spark is not None:
            return Session.adopt(self._spark)
        if self._shared is not None:
            return self._shared.lend(topology, options)
        if options.keeps_spark:
            wanted = session_options(topology, queries, keeps_state=True, log_dir=None)
            return lend(wanted, partial(open_with, progress=options.tell, preload=preload))
        return open_session(topology, queries, options.tell, log_format=options.log_format, preload=preload)


def _attended(topology: Topology, checkpoint: Checkpoint, recorder: Recorder, options: RunOptions) -> AbstractContextManager[None]:
    """In the body others can look at the run."""
    if options.private:
        return nullcontext()
    return attended(AttendedRun(topology, checkpoint, recorder, options.gate, options.stop), options, os.environ)


def preload() -> None:
    """Import PySpark while the JVM starts."""
    import millstream.engine.run.execution  # noqa: F401 — the import is the work


def _queries_to_repeat(queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, recorder: Recorder) -> tuple[str, ...]:
    """The queries to repeat: those that are done, and those whose repetition has not begun."""
    done = [query for query in queries if checkpoint.finished_at(query.name) or checkpoint.awaits_repetition(query.name)]
    sinks = ", ".join(f"`{sink.name}`" for query in done for sink in query.sinks)
    recorder.note(f"repeated from the start: {sinks} will receive rows once more" if done else "nothing to repeat: no query has finished")
    return tuple(query.name for query in done)


def _reset(queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, names: tuple[str, ...]) -> None:
    known = {query.name: query for query in queries}
    stored = set(checkpoint.queries())
    for name in names:
        if name not in known and name not in stored:
            raise RunError(Diagnostic("MS057", f"there is no query `{name}`", help=nearest(name, {*known, *stored})))
        others = {node.name for query in queries if query.name != name for node in query.sources}
        sources = [node.name for node in known[name].sources] if name in known else []
        checkpoint.reset(name, [source for source in sources if source not in others])


def _report(recorder: Recorder, url: str, times: dict[str, float]) -> Report:
    return Report(recorder.snapshot(), url, times)
