"""The engine as the front doors see it: a plan goes in, a report comes out.

The order matters for the first second. What can refuse a run without Spark does so first (whose checkpoint is it, is it finished);
then the JVM is started; only then is PySpark imported, while the JVM starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.clients.storage import is_local, open_storage
from millstream.engine import localfiles
from millstream.engine.checkpoint import Checkpoint
from millstream.engine.session import Profile, Session, SessionOptions, begin
from millstream.engine.sparkconf import is_local as is_local_master
from millstream.errors import Diagnostic, RunError, SpecError, nearest
from millstream.observe.facts import Recorder
from millstream.observe.report import Report
from millstream.plan.components import Source
from millstream.plan.confidences import unreadable
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.rules import check
from millstream.plan.running import RunOptions, checkpoint_of
from millstream.plan.topology import Topology
from millstream.secrets import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """Runs plans on Spark: on a session of its own, or on one that the caller has."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    def run(self, topology: Topology, options: RunOptions) -> Report:
        """Run to the end of the input, to a stop or to a failure."""
        errors = [finding for finding in check(topology) if finding.level == "error"] or list(unreadable(topology))
        if errors:
            raise SpecError(errors)
        started, queries, url = time.monotonic(), cut(topology), checkpoint_of(topology)
        recorder = Recorder(topology.name)
        if is_local(url):
            checkpoint = Checkpoint(open_storage(url), topology.name)
            lease = checkpoint.claim()
            try:
                if self._finished(checkpoint, queries, options, recorder):
                    return _report(recorder, url, {})
                with self._session(topology, queries, options) as session:
                    return self._execute(topology, queries, checkpoint, session, recorder, options, started)
            finally:
                lease.release()
        with self._session(topology, queries, options) as session:
            checkpoint = Checkpoint(open_storage(url, session.spark), topology.name)
            lease = checkpoint.claim()
            try:
                return self._execute(topology, queries, checkpoint, session, recorder, options, started)
            finally:
                lease.release()

    def _execute(
        self,
        topology: Topology,
        queries: tuple[QueryPlan, ...],
        checkpoint: Checkpoint,
        session: Session,
        recorder: Recorder,
        options: RunOptions,
        started: float,
    ) -> Report:
        from millstream.engine.execution import Execution

        repeated = _repeated(queries, checkpoint, recorder) if options.again else ()
        _reset(queries, checkpoint, (*options.reset, *repeated))
        times = dict(session.times)
        for warning in session.diagnostics:
            recorder.note(f"{warning.message}: {warning.help}")
        execution = Execution(topology, checkpoint, session.spark, recorder, options)
        execution.run([query for query in queries if not checkpoint.finished(query.name)])
        times["run"] = time.monotonic() - started - sum(times.values())
        return _report(recorder, checkpoint.storage.url, times)

    def _session(self, topology: Topology, queries: tuple[QueryPlan, ...], options: RunOptions) -> Session:
        if self._spark is not None:
            return Session.adopt(self._spark)
        return open_session(topology, queries, options.tell)

    def _finished(self, checkpoint: Checkpoint, queries: tuple[QueryPlan, ...], options: RunOptions, recorder: Recorder) -> bool:
        """Whether every query has come to the end of its bounded input in an earlier run."""
        ends = {query.name: checkpoint.finished(query.name) for query in queries}
        if options.reset or options.again or not all(ends.values()):
            return False
        end = max(end for end in ends.values() if end)
        recorder.note(f"this job was done at {end}, and there is nothing left to do; `--again` repeats it from the start")
        recorder.state("done")
        return True


def open_session(topology: Topology, queries: tuple[QueryPlan, ...], progress: Callable[[str], None] = lambda _: None) -> Session:
    """A session with the plan's settings; importing PySpark overlaps with the start of the JVM."""
    settings = topology.settings
    conf = {key: value.reveal() if isinstance(value, Secret) else value for key, value in settings.spark.items()}
    if settings.state_partitions:
        conf.setdefault("spark.sql.shuffle.partitions", str(settings.state_partitions))
    keeps_state = is_local_master(settings.master) and any(query.stateful for query in queries)
    if keeps_state:
        conf = {**localfiles.CONF, **conf}
    options = SessionOptions(
        app_name=topology.name,
        master=settings.master,
        conf=conf,
        profile=profile_of(topology, queries),
        extras=tuple(sorted({extra for node in topology.nodes for extra in node.component.extras()})),
        log_dir=_log_dir(topology),
        driver_memory=f"{settings.driver_memory.bytes >> 20}m" if settings.driver_memory else None,
    )
    starting = begin(options, progress=progress)
    try:
        import millstream.engine.execution  # noqa: F401 — imported here so that PySpark loads while the JVM starts

        session = starting.finish()
        if keeps_state and conf["spark.hadoop.fs.file.impl"] in localfiles.CONF.values():
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
    base = Path(url.removeprefix("file://")) if is_local(url) else Path(".millstream") / topology.name
    return base / "logs"


def _repeated(queries: tuple[QueryPlan, ...], checkpoint: Checkpoint, recorder: Recorder) -> tuple[str, ...]:
    """The queries that are done, to be done again."""
    done = [query for query in queries if checkpoint.finished(query.name)]
    sinks = ", ".join(f"`{sink.name}`" for query in done for sink in query.sinks)
    recorder.note(f"done again from the start: {sinks} received rows once more" if done else "nothing was done yet that could be repeated")
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
