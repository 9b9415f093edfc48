"""One run of a plan on a session: schemas are settled, queries are admitted and started, watched until all are done."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from millstream.engine.checkpoint import Checkpoint
from millstream.engine.commitments import Commitments
from millstream.engine.evolution import admit
from millstream.engine.failures import translate
from millstream.engine.functions import registered
from millstream.engine.lowering import Lowering
from millstream.engine.queries import RunningQuery
from millstream.engine.realtime import RealTimeQuery
from millstream.errors import SpecError
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
_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark writes every failed query to the terminal, JVM trace included; `failures` says the same in one screen."""


class Execution:
    """Runs the queries of one plan."""

    def __init__(self, topology: Topology, checkpoint: Checkpoint, spark: SparkSession, recorder: Recorder, options: RunOptions) -> None:
        self._topology, self._checkpoint, self._spark = topology, checkpoint, spark
        self._recorder, self._options = recorder, options
        self._redact = Redactor(secrets_of(topology))
        for name in _CHATTY:
            logging.getLogger(name).disabled = True

    def run(self, plans: list[QueryPlan]) -> None:
        topology = self._topology
        self._store = open_store(topology)
        try:
            with registered(self._spark, topology.functions, topology.directory), _retaining(self._spark, topology.settings.retain_epochs):
                self._run(plans)
        finally:
            if self._store is not None:
                self._store.close()

    def _run(self, plans: list[QueryPlan]) -> None:
        queries = self._prepare(plans)
        self._recorder.state("running")
        self._commitments.tell()
        for query in queries:
            query.start()
        try:
            self._watch(queries)
        finally:
            for query in queries:
                if query.handle is not None and query.handle.isActive:
                    query.handle.stop()
            self._commitments.close()
        failures = [query.failure for query in queries if query.failure]
        if failures:
            self._recorder.state("failed")
            raise failures[0]
        self._recorder.state("stopped" if self._options.stop.is_set() else "done")

    def _prepare(self, plans: list[QueryPlan]) -> list[RunningQuery]:
        for plan in plans:
            self._checkpoint.query(plan.name).examine()
        histories = [admit(self._topology, plan, self._checkpoint, self._options.accept_change) for plan in plans]
        topology, hidden = self._topology, self._redact.values
        lowering = Lowering(
            self._spark, self._checkpoint, topology.directory, self._schemas(plans), hidden, topology.functions, store=self._store
        )
        settings, stop, name = topology.settings, self._options.stop, topology.name
        kind = RealTimeQuery if isinstance(settings.trigger, RealTime) else RunningQuery
        self._commitments = told = Commitments(topology, lowering, self._recorder, self._redact)
        return [
            kind(history.plan, history, self._checkpoint, lowering, settings, self._recorder, stop, self._redact, name, told)
            for history in histories
        ]

    def _watch(self, queries: list[RunningQuery]) -> None:
        while not all(query.done for query in queries):
            for query in queries:
                query.watch()
            if any(query.failure for query in queries):
                self._options.stop.set()
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


@contextmanager
def _retaining(spark: SparkSession, epochs: int | None) -> Iterator[None]:
    """Queries that start within this keep so many epochs; the session may be somebody else's, so it is set back."""
    before = spark.conf.get(_RETAIN)
    spark.conf.set(_RETAIN, str(epochs) if epochs is not None else str(before))
    try:
        yield
    finally:
        spark.conf.set(_RETAIN, str(before))
