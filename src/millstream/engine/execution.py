"""One run of a plan on a session: schemas are settled, queries are admitted and started, watched until all are done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from millstream.engine.checkpoint import Checkpoint
from millstream.engine.commitments import Commitments
from millstream.engine.evolution import admit
from millstream.engine.failures import translate
from millstream.engine.functions import registered
from millstream.engine.hush import hush
from millstream.engine.interrupts import interruptible
from millstream.engine.lowering import Lowering
from millstream.engine.queries import RunningQuery, Stopping
from millstream.engine.realtime import RealTimeQuery
from millstream.engine.redelivery import discard_scratch
from millstream.engine.tails import mend
from millstream.errors import RunError, SpecError, TransientError
from millstream.observe.facts import Recorder
from millstream.plan import types
from millstream.plan.components import Source
from millstream.plan.confidences import secrets_of
from millstream.plan.cutting import QueryPlan
from millstream.plan.rules import check
from millstream.plan.running import RunOptions
from millstream.plan.settings import RealTime
from millstream.plan.storing import open_store
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

_TICK_SECONDS = 0.1
_RETAIN = "spark.sql.streaming.minBatchesToRetain"
_COUNTING = {"spark.sql.csv.filterPushdown.enabled": "false", "spark.sql.json.filterPushdown.enabled": "false"}
"""A filter in the parser drops rows before anything counts them, and before the rest of such a row is found to be bad."""


class Execution:
    """Runs the queries of one plan."""

    def __init__(self, topology: Topology, checkpoint: Checkpoint, spark: SparkSession, recorder: Recorder, options: RunOptions) -> None:
        self._topology, self._checkpoint, self._spark = topology, checkpoint, spark
        self._recorder, self._options = recorder, options
        self._stopping = Stopping(options.stop)
        self._redact = Redactor(secrets_of(topology))
        hush()

    def run(self, plans: list[QueryPlan]) -> None:
        topology = self._topology
        self._store = open_store(topology)
        retain = topology.settings.retain_epochs
        settings = _COUNTING | ({_RETAIN: str(retain)} if retain is not None else {})
        try:
            functions = registered(self._spark, topology.functions, topology.directory, self._redact.values)
            with functions, _set(self._spark, settings):
                self._run(plans)
        finally:
            if self._store is not None:
                self._store.close()

    def _run(self, plans: list[QueryPlan]) -> None:
        queries = self._prepare(plans)
        self._recorder.state("running")
        self._commitments.tell()
        try:
            with interruptible(self._options.stop):
                for query in queries:
                    query.start()
                self._watch(queries)
        finally:
            for query in queries:
                with suppress(Exception):  # a JVM that is gone has stopped it
                    if query.handle is not None and query.handle.isActive:
                        query.handle.stop()
            self._commitments.close()
        failures = [query.failure for query in queries if query.failure]
        if failures:
            self._recorder.state("failed")
            raise _together(failures)
        self._recorder.state("stopped" if self._options.stop.is_set() else "done")

    def _prepare(self, plans: list[QueryPlan]) -> list[RunningQuery]:
        discard_scratch(self._checkpoint)
        for plan in plans:
            query = self._checkpoint.query(plan.name)
            if removed := mend(query):
                self._recorder.note(f"query `{plan.name}`: the last run was cut off while Spark wrote {', '.join(removed)}; written anew")
            query.examine()
        histories = [admit(self._topology, plan, self._checkpoint, self._options.accept_change) for plan in plans]
        topology, hidden = self._topology, self._redact.values
        lowering = Lowering(
            self._spark, self._checkpoint, topology.directory, self._schemas(plans), hidden, topology.functions, store=self._store
        )
        settings, stop, name = topology.settings, self._stopping, topology.name
        kind = RealTimeQuery if isinstance(settings.trigger, RealTime) else RunningQuery
        self._commitments = told = Commitments(topology, lowering, self._recorder, self._redact)
        return [
            kind(history.plan, history, self._checkpoint, lowering, settings, self._recorder, stop, self._redact, name, told, self._options)
            for history in histories
        ]

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
        """Schemas of the sources: as declared, as pinned at the first start, or as the data says now."""
        names = dict.fromkeys(node.name for plan in plans for node in plan.sources)
        found = {name: self._schema(name) for name in names}
        errors = [finding for finding in check(self._topology, found) if finding.level == "error"]
        if errors:
            raise SpecError(errors)
        return found

    def _schema(self, name: str) -> pa.Schema:
        node = self._topology.node(name)
        assert isinstance(node.component, Source)
        declared = node.component.output()
        if declared is not None:
            return declared
        storage = self._checkpoint.node(name)
        pinned = storage.read("schema.json")
        if pinned is not None:
            return types.schema(json.loads(pinned))
        try:
            schema = node.component.discover(self._spark, Lowering(self._spark, self._checkpoint, self._topology.directory).context(node))
        except Exception as error:
            raise translate(error, [node], name, self._redact, self._topology.name) from error
        storage.put_once("schema.json", json.dumps(types.columns(schema)).encode())
        return schema


def _together(failures: list[RunError]) -> RunError:
    """What stopped the queries, told at once; it may work later only when all of it may."""
    kind = TransientError if all(isinstance(failure, TransientError) for failure in failures) else RunError
    found = {(each.code, each.message): each for failure in reversed(failures) for each in reversed(failure.diagnostics)}
    told = failures[0] if len(failures) == 1 else kind(reversed(found.values()))
    told.__cause__ = failures[0].__cause__
    return told


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Queries that start within this have these settings; the session may be somebody else's, so they are set back."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.set(name, str(earlier))
