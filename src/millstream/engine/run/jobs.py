"""Jobs: pipelines whose inputs are all bounded. A job runs once.

Before a job counts as done, its stored plan is compared with the current one, and the ledgers of its targets are read where that needs no
Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from millstream.checkpoint.deliveries import Deliveries
from millstream.checkpoint.evolution import Change, changes
from millstream.checkpoint.layout import Checkpoint, QueryCheckpoint
from millstream.engine.failures import Translator
from millstream.errors import Diagnostic, RunError
from millstream.observe.recorder import Recorder
from millstream.plan.components import Epoch, KeepsLedger, LedgerEntry, NodeContext
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import SinkNode
from millstream.plan.run_options import RunOptions
from millstream.plan.secret_references import secrets_of
from millstream.plan.topology import Topology
from millstream.secrets import Redactor


def is_done(topology: Topology, queries: Sequence[QueryPlan], checkpoint: Checkpoint, options: RunOptions, recorder: Recorder) -> bool:
    """Whether an earlier run brought every query to the end of its bounded input. Raises a RunError when the plan of a finished query
    has changed since, or when a target lacks a committed epoch.
    """
    if options.again:
        return False
    for query in queries:
        if query.name not in options.reset and checkpoint.awaits_repetition(query.name):
            raise RunError(_unbegun(query))
    ends = {query.name: checkpoint.finished_at(query.name) for query in queries}
    done = [query for query in queries if ends[query.name] and query.name not in options.reset]
    changed = {query.name: found for query in done if (found := changes(topology, query, checkpoint))}
    if changed:
        raise RunError(_refusal([query for query in done if query.name in changed], changed, ends))
    if options.reset or options.redeliver or not all(ends.values()):
        return False
    _compare_targets(topology, queries, checkpoint, options, recorder)
    end = max(end for end in ends.values() if end)
    recorder.note(options.reword(f"this job was done at {end}, and nothing is left to do; `--again` repeats it from the start"))
    unasked = [
        sink.name for query in queries for sink in query.sinks if sink.component.ledger_lasts and not sink.component.recalls_without_spark
    ]
    if unasked:
        named = ", ".join(f"`{name}`" for name in unasked)
        recorder.note(
            options.reword(f"the ledger of {named} can be read only with Spark; `--redeliver` reads it and delivers what is missing")
        )
    recorder.state("done")
    return True


def _compare_targets(
    topology: Topology, queries: Sequence[QueryPlan], checkpoint: Checkpoint, options: RunOptions, recorder: Recorder
) -> None:
    lacks = []
    for query in queries:
        progress = checkpoint.query(query.name)
        deliveries = Deliveries(checkpoint, progress)
        asking = _LedgerReader(topology, checkpoint, progress)
        found = deliveries.find_lacks(list(_readable_sinks(query)), asking.epoch_of, asking.recall)
        if found and options.accept_target:
            deliveries.accept(found)
            recorder.warn(f"accepted as missing in the target: {', '.join(f'`{lack.sink.name}` {lack.named}' for lack in found)}")
        else:
            lacks += found
    if lacks:
        raise RunError([lack.diagnostic() for lack in lacks])


def _readable_sinks(query: QueryPlan) -> Iterator[SinkNode]:
    return (sink for sink in query.sinks if sink.component.ledger_lasts and sink.component.recalls_without_spark)


@dataclass(frozen=True, slots=True)
class _LedgerReader:
    """A query whose ledgers are read outside of a run."""

    topology: Topology
    checkpoint: Checkpoint
    query: QueryCheckpoint

    def epoch_of(self, sink: SinkNode, number: int, digest: str) -> Epoch:
        return Epoch(self.query.query_id(), sink.name, number, digest, "")

    def recall(self, sink: SinkNode, epoch: Epoch) -> LedgerEntry | None:
        context = NodeContext(sink.name, self.topology.directory, self.checkpoint.node(sink.name), pipeline=self.topology.name)
        try:
            with closing(sink.component.open(context)) as run:
                return run.recall(None, epoch) if isinstance(run, KeepsLedger) else None
        except Exception as error:
            translator = Translator([sink], self.topology.name, Redactor(secrets_of(self.topology)))
            raise translator.translate(error, sink.name) from error


def _unbegun(query: QueryPlan) -> Diagnostic:
    sinks = ", ".join(f"`{sink.name}`" for sink in query.sinks)
    message = f"this job was done; a repetition was started and failed before query `{query.name}` read anything"
    return Diagnostic("MS167", message, query.root.span, help=f"`--again` repeats it from the start, and {sinks} will receive rows again")


def _refusal(queries: list[QueryPlan], changed: dict[str, list[Change]], ends: dict[str, str | None]) -> Diagnostic:
    first = changed[queries[0].name][0]
    nodes = [node for query in queries for node in (*query.nodes, *query.sinks)]
    sinks = ", ".join(f"`{sink.name}`" for query in queries for sink in query.sinks)
    return Diagnostic(
        "MS147",
        f"this job was done at {ends[queries[0].name]}, and its plan has changed since; nothing was run",
        next((node.span for node in nodes if node.name == first.node), None),
        detail="\n".join(f"~ {change.text}" for found in changed.values() for change in found),
        help=f"`--again` repeats it from the start, and {sinks} will receive rows again; or give the pipeline a new `name`",
    )
