"""One run of a plan on a session: settles schemas, admits and starts queries, and watches them until all are done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from millstream.checkpoint.evolution import admit
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.repair import remove_unfinished
from millstream.checkpoint.store import open_store
from millstream.engine.failures import Translator
from millstream.engine.lowering.counters import Counters
from millstream.engine.lowering.functions import functions_registered
from millstream.engine.lowering.nodes import Lowering
from millstream.engine.lowering.runs import NodeRuns
from millstream.engine.lowering.traces import Taps
from millstream.engine.run.query import RunningQuery, RunServices, Stopping
from millstream.engine.run.real_time import RealTimeQuery
from millstream.engine.run.redelivery import discard_scratch
from millstream.engine.run.source_commits import SourceCommits
from millstream.errors import RunError, SpecError
from millstream.jvm.quiet import hush
from millstream.observe.recorder import Recorder
from millstream.plan import types
from millstream.plan.cutting import QueryPlan
from millstream.plan.lookup_tables import table_nodes
from millstream.plan.run_options import RunOptions
from millstream.plan.secret_references import secrets_of
from millstream.plan.settings import RealTime
from millstream.plan.topology import Topology
from millstream.rules import check
from millstream.secrets import Redactor

_TICK_SECONDS = 0.1
_RETAIN = "spark.sql.streaming.minBatchesToRetain"
_COUNTING = {"spark.sql.csv.filterPushdown.enabled": "false", "spark.sql.json.filterPushdown.enabled": "false"}
"""A pushed-down filter drops rows in the parser, before they are counted and before the rest of a row is validated."""


class Execution:
    """Runs the queries of one plan."""

    def __init__(
        self,
        topology: Topology,
        plans: Sequence[QueryPlan],
        checkpoint: Checkpoint,
        spark: SparkSession,
        recorder: Recorder,
        options: RunOptions,
    ) -> None:
        self._all_plans = plans
        self._runs = NodeRuns(table_nodes(topology.nodes))
        self._source_commits: SourceCommits | None = None
        self._topology, self._checkpoint, self._spark = topology, checkpoint, spark
        self._recorder, self._options = recorder, options
        self._stopping = Stopping(options.stop)
        self._redact = Redactor(secrets_of(topology))
        self._counters = Counters(spark)
        hush()

    def run(self, plans: list[QueryPlan]) -> None:
        topology = self._topology
        self._store = open_store(topology)
        retain = topology.settings.retain_epochs
        settings = _COUNTING | ({_RETAIN: str(retain)} if retain is not None else {})
        try:
            functions = functions_registered(self._spark, topology.functions, topology.directory, self._redact.values)
            with functions, _spark_settings(self._spark, settings):
                self._run(plans)
        finally:
            if self._store is not None:
                self._store.close()

    def _run(self, plans: list[QueryPlan]) -> None:
        queries: list[RunningQuery] = []
        try:
            queries = self._prepare(plans)
            self._recorder.state("running")
            assert self._source_commits is not None
            self._source_commits.report()
            for query in queries:
                query.start()
            self._watch(queries)
        finally:
            self._stopping.set()  # a paused epoch must not begin, and Spark's stop waits for it
            for query in queries:
                with suppress(Exception):  # a dead JVM has stopped it
                    if query.handle is not None and query.handle.isActive:
                        query.handle.stop()
            self._close()
        failures = [query.failure for query in queries if query.failure]
        if failures:
            self._recorder.state("failed")
            raise _combine(failures)
        self._recorder.state("stopped" if self._options.stop.is_set() else "done")

    def _close(self) -> None:
        """Report the last offsets and close the run objects. A failure here does not hide the failure of the run."""
        self._counters.close()
        failed: list[tuple[str, Exception]] = []
        try:
            if self._source_commits is not None:
                self._source_commits.close()
        except Exception as error:  # noqa: BLE001 — the run objects are closed all the same
            failed.append(("the report of committed offsets", error))
        failed += [(f"`{name}`", error) for name, error in self._runs.close()]
        for what, reason in failed:
            self._recorder.note(f"{what} could not be closed: {self._redact(str(reason)).partition(chr(10))[0]}")

    def _prepare(self, plans: list[QueryPlan]) -> list[RunningQuery]:
        discard_scratch(self._checkpoint)
        for plan in plans:
            query = self._checkpoint.query(plan.name)
            if removed := remove_unfinished(query):
                self._recorder.note(
                    f"query `{plan.name}`: the last run was interrupted while Spark wrote {', '.join(removed)}; it is written again"
                )
            query.examine()
        histories = [admit(self._topology, plan, self._checkpoint, self._options.accept_change) for plan in plans]
        topology, hidden = self._topology, self._redact.values
        lowering = Lowering(
            self._spark,
            self._checkpoint,
            topology.directory,
            self._schemas(plans),
            hidden,
            topology.functions,
            self._runs,
            self._store,
            real_time=isinstance(topology.settings.trigger, RealTime),
            dry=self._options.private,
            side_outputs=topology.side_outputs if not self._options.private else (),
            counters=self._counters,
            is_stopping=self._stopping.is_set,
        )
        self._source_commits = SourceCommits(
            topology,
            self._all_plans,
            lowering,
            self._recorder,
            self._redact,
            self._options.gate,
            self._stopping.is_set,
            private=self._options.private,
        )
        services = RunServices(
            topology.name,
            self._checkpoint,
            lowering,
            topology.settings,
            self._options,
            self._recorder,
            self._stopping,
            self._redact,
            self._source_commits,
        )
        kind = RealTimeQuery if isinstance(topology.settings.trigger, RealTime) else RunningQuery
        return [kind(history.plan, history, replace(services, lowering=self._with_taps(lowering))) for history in histories]

    def _with_taps(self, lowering: Lowering) -> Lowering:
        """Every query notes its own traced records."""
        settings, real_time = self._topology.settings, lowering.real_time
        traces = any(node.options.telemetry.trace is not None for node in self._topology.sources)
        wanted = settings.telemetry.otlp is not None and traces and not real_time and not self._options.private
        return replace(lowering, taps=Taps(self._spark), traced={}) if wanted else lowering

    def _watch(self, queries: list[RunningQuery]) -> None:
        while not all(query.done for query in queries):
            self._checkpoint.require_lease()
            for query in queries:
                query.watch()
            if any(query.failure for query in queries):
                self._stopping.set()
            if self._options.watch is not None:
                self._options.watch(self._recorder.snapshot())
            waiting = next((query for query in queries if not query.done), None)
            if waiting is not None:
                waiting.wait(_TICK_SECONDS)

    def _schemas(self, plans: list[QueryPlan]) -> dict[str, pa.Schema]:
        """Schemas of the sources: declared, pinned at the first start, or discovered in the data."""
        names = dict.fromkeys(node.name for plan in plans for node in plan.sources)
        found = {name: self._schema(name) for name in names}
        if any(node.component.output() is None for node in self._topology.sources):  # the plan was checked with the declared schemas
            errors = [finding for finding in check(self._topology, found) if finding.level == "error"]
            if errors:
                raise SpecError(errors)
        return found

    def _schema(self, name: str) -> pa.Schema:
        node = next(source for source in self._topology.sources if source.name == name)
        declared = node.component.output()
        if declared is not None:
            return declared
        storage = self._checkpoint.node(name)
        pinned = storage.read("schema.json")
        if pinned is not None:
            return types.schema(json.loads(pinned))
        try:
            with closing(Lowering(self._spark, self._checkpoint, self._topology.directory).source(node)) as run:
                schema = run.discover(self._spark)
        except Exception as error:
            raise Translator([node], self._topology.name, self._redact).translate(error, name) from error
        storage.put_once("schema.json", json.dumps(types.columns(schema)).encode())
        return schema


def _combine(failures: list[RunError]) -> RunError:
    """All failures that stopped the queries, as one error; it is temporary only when all of them are."""
    kinds = {type(failure) for failure in failures}
    kind = kinds.pop() if len(kinds) == 1 else RunError
    found = {(each.code, each.message): each for failure in reversed(failures) for each in reversed(failure.diagnostics)}
    told = failures[0] if len(failures) == 1 else kind(reversed(found.values()))
    told.__cause__ = failures[0].__cause__
    return told


@contextmanager
def _spark_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Queries that start in the body have these settings. They are restored afterwards, since the session may be the caller's."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.set(name, str(earlier))
