"""The engine as the front doors see it: a plan goes in, a report comes out.

The order matters for the first second. What can refuse a run without Spark does so first (whose checkpoint is it, is it finished);
then the JVM is started; only then is PySpark imported, while the JVM starts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.clients.storage import is_local, open_storage
from millstream.engine import localfiles
from millstream.engine.checkpoint import Checkpoint
from millstream.engine.deaths import death_of
from millstream.engine.jobs import is_done
from millstream.engine.session import Profile, Session, SessionOptions, begin
from millstream.engine.sparkconf import is_local as is_local_master
from millstream.engine.warmth import dismiss, lend
from millstream.errors import Diagnostic, MillstreamError, RunError, SpecError, TransientError, nearest
from millstream.observe.facts import Recorder, Restart
from millstream.observe.report import Report
from millstream.plan.components import Source
from millstream.plan.confidences import unreadable
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.places import FOLDER, home_of
from millstream.plan.rules import check
from millstream.plan.running import RunOptions, checkpoint_of
from millstream.plan.topology import Topology
from millstream.secrets import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Work = Callable[[Session, Recorder, RunOptions], Report]


class SparkEngine:
    """Runs plans on Spark: on a session of its own, or on one that the caller has."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark
        self._begun_anew = False
        """Whether `--reset` and `--again` have been followed, so that a second JVM must not follow them again."""

    def run(self, topology: Topology, options: RunOptions) -> Report:
        """Run to the end of the input, to a stop or to a failure."""
        try:
            return self._run(topology, options)
        except MillstreamError as error:
            error.diagnostics = tuple(replace(found, help=options.worded(found.help)) for found in error.diagnostics)
            raise

    def _run(self, topology: Topology, options: RunOptions) -> Report:
        findings = [finding for finding in check(topology) if finding.level == "error" and not self._may_know(finding)]
        errors = findings or list(unreadable(topology))
        if errors:
            raise SpecError(errors)
        started, queries, url = time.monotonic(), cut(topology), checkpoint_of(topology)
        recorder = Recorder(topology.name)
        if is_local(url):
            checkpoint = Checkpoint(open_storage(url, durable=topology.settings.durable), topology.name)
            lease = checkpoint.claim(home=home_of(topology))
            try:
                if is_done(topology, queries, checkpoint, options, recorder):
                    return _report(recorder, url, {})
                return self._surviving(topology, queries, recorder, options, partial(self._execute, topology, queries, checkpoint, started))
            finally:
                lease.release()
        return self._surviving(topology, queries, recorder, options, partial(self._claim, topology, queries, url, started))

    def _may_know(self, finding: Diagnostic) -> bool:
        """Whether a finding is about a function that may be registered in the session that the caller has handed over."""
        return self._spark is not None and finding.code == "MS159"

    def _surviving(self, topology: Topology, queries: tuple[QueryPlan, ...], recorder: Recorder, options: RunOptions, work: Work) -> Report:
        """Work in a session. A JVM that died, and not for its memory, is replaced as often as `settings.restart` says."""
        restart, attempt, epochs = topology.settings.restart, 0, 0
        while True:
            with self._session(topology, queries, options) as session:
                try:
                    return work(session, recorder, options)
                except Exception as error:
                    death = death_of(session.jvm, error)
                    if death is None:
                        raise
                    done = sum(facts.epochs for facts in recorder.snapshot().queries.values())
                    attempt, epochs = 0 if done > epochs else attempt, done
                    if not isinstance(death, TransientError) or attempt >= restart.limit or options.stop.is_set():
                        recorder.state("failed")
                        raise death from error
            pause = min(restart.backoff.seconds * 2**attempt, restart.max_backoff.seconds)
            attempt += 1
            recorder.restart(Restart("", death.diagnostics[0].message, attempt, pause))
            if options.watch is not None:
                options.watch(recorder.snapshot())
            if options.stop.wait(pause):
                recorder.state("stopped")
                return _report(recorder, checkpoint_of(topology), {})
            options = replace(options, reset=(), again=False) if self._begun_anew else options

    def _claim(
        self,
        topology: Topology,
        queries: tuple[QueryPlan, ...],
        url: str,
        started: float,
        session: Session,
        recorder: Recorder,
        options: RunOptions,
    ) -> Report:
        """A checkpoint that only Spark can reach is claimed within the session."""
        checkpoint = Checkpoint(open_storage(url, session.spark, topology.settings.durable), topology.name)
        lease = checkpoint.claim()
        try:
            if is_done(topology, queries, checkpoint, options, recorder):
                return _report(recorder, url, dict(session.times))
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
        from millstream.engine.execution import Execution

        repeated = _repeated(queries, checkpoint, recorder) if options.again else ()
        for name in repeated:
            checkpoint.begin_again(name)
        _reset(queries, checkpoint, (*options.reset, *repeated))
        self._begun_anew = True
        times = dict(session.times)
        for warning in session.diagnostics:
            recorder.note(f"{warning.message}: {warning.help}")
        execution = Execution(topology, checkpoint, session.spark, recorder, options)
        execution.run([query for query in queries if options.redeliver or not checkpoint.finished(query.name)])
        times["run"] = time.monotonic() - started - sum(times.values())
        return _report(recorder, checkpoint.storage.url, times)

    def _session(self, topology: Topology, queries: tuple[QueryPlan, ...], options: RunOptions) -> Session:
        if self._spark is not None:
            return Session.adopt(self._spark)
        if options.keeps_spark:
            wanted = _session_options(topology, queries, keeps_state=True, log_dir=None)
            return lend(wanted, partial(_opened, progress=options.tell))
        return open_session(topology, queries, options.tell)


def open_session(
    topology: Topology, queries: tuple[QueryPlan, ...], progress: Callable[[str], None] = lambda _: None, *, logs: bool = True
) -> Session:
    """A session with the plan's settings. The checkpoint's logs belong to the run that holds its lease: who only looks at the plan goes
    without `logs`.
    """
    dismiss()
    keeps_state = any(query.stateful for query in queries)
    return _opened(_session_options(topology, queries, keeps_state, _log_dir(topology) if logs else None), progress)


def _session_options(topology: Topology, queries: tuple[QueryPlan, ...], keeps_state: bool, log_dir: Path | None) -> SessionOptions:
    settings = topology.settings
    conf = {key: value.reveal() if isinstance(value, Secret) else value for key, value in settings.spark.items()}
    conf |= _redacted(settings.spark)
    if settings.state_partitions:
        conf.setdefault("spark.sql.shuffle.partitions", str(settings.state_partitions))
    if keeps_state and is_local_master(settings.master):
        conf = {**localfiles.CONF, **conf}
    return SessionOptions(
        app_name=topology.name,
        master=settings.master,
        conf=conf,
        profile=profile_of(topology, queries),
        extras=tuple(sorted({extra for node in topology.nodes for extra in node.component.extras()})),
        log_dir=log_dir,
        driver_memory=f"{settings.driver_memory.bytes >> 20}m" if settings.driver_memory else None,
    )


def _redacted(spark: Mapping[str, str | Secret]) -> dict[str, str]:
    """Spark hides the values of settings whose names match a pattern; those that are given as secrets are added to it, by name.
    Hadoop shows its own without the prefix.
    """
    names = [re.escape(name.removeprefix("spark.hadoop.")) for name, value in spark.items() if isinstance(value, Secret)]
    given = spark.get("spark.redaction.regex", "(?i)secret|password|token|access[.]?key")
    return {"spark.redaction.regex": "|".join([str(given), *names])} if names else {}


def _opened(options: SessionOptions, progress: Callable[[str], None]) -> Session:
    """Importing PySpark overlaps with the start of the JVM."""
    starting = begin(options, progress=progress)
    try:
        import millstream.engine.execution  # noqa: F401 — imported here so that PySpark loads while the JVM starts

        session = starting.finish()
        if options.conf.get("spark.hadoop.fs.file.impl") in localfiles.CONF.values():
            localfiles.write_no_checksum_files(session.spark)
        return session
    except BaseException:
        starting.abandon()
        raise


def profile_of(topology: Topology, queries: tuple[QueryPlan, ...]) -> Profile:
    """`auto`: a quick start for small bounded work, throughput for everything else."""
    if topology.settings.profile != "auto":
        return topology.settings.profile
    sources = [node.component for query in queries for node in query.sources]
    return "short" if all(isinstance(source, Source) and source.bounded and source.small for source in sources) else "long"


def _log_dir(topology: Topology) -> Path:
    url = checkpoint_of(topology)
    base = Path(url.removeprefix("file://")) if is_local(url) else topology.directory / FOLDER / topology.name
    return base / "logs"


def _repeated(queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, recorder: Recorder) -> tuple[str, ...]:
    """The queries that are done, or whose repetition has not begun, to be done again."""
    done = [query for query in queries if checkpoint.finished(query.name) or checkpoint.awaits_repetition(query.name)]
    sinks = ", ".join(f"`{sink.name}`" for query in done for sink in query.sinks)
    recorder.note(
        f"done again from the start: {sinks} will receive rows once more" if done else "nothing was done yet that could be repeated"
    )
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
