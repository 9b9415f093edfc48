"""Jobs: pipelines whose inputs are all bounded. They are done once. Before one is taken for done, it is compared with its plan, and its
targets are asked what they hold, as far as they can be asked without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millstream.engine.checkpoint import Checkpoint, QueryCheckpoint
from millstream.engine.deliveries import Deliveries
from millstream.engine.evolution import Change, changes
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import Recorder
from millstream.plan.components import Epoch, LedgerEntry, NodeContext, Sink
from millstream.plan.confidences import secrets_of
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node
from millstream.plan.running import RunOptions
from millstream.plan.topology import Topology
from millstream.secrets import Redactor


def is_done(topology: Topology, queries: Sequence[QueryPlan], checkpoint: Checkpoint, options: RunOptions, recorder: Recorder) -> bool:
    """Whether an earlier run has brought every query to the end of its bounded input. Raises a RunError
    when the plan of a finished query has changed since, or when a target lacks what was committed to it.
    """
    if options.again:
        return False
    for query in queries:
        if query.name not in options.reset and checkpoint.awaits_repetition(query.name):
            raise RunError(_unbegun(query))
    ends = {query.name: checkpoint.finished(query.name) for query in queries}
    done = [query for query in queries if ends[query.name] and query.name not in options.reset]
    changed = {query.name: found for query in done if (found := changes(topology, query, checkpoint))}
    if changed:
        raise RunError(_refusal([query for query in done if query.name in changed], changed, ends))
    if options.reset or options.redeliver or not all(ends.values()):
        return False
    _compare_targets(topology, queries, checkpoint, options, recorder)
    end = max(end for end in ends.values() if end)
    recorder.note(options.worded(f"this job was done at {end}, and there is nothing left to do; `--again` repeats it from the start"))
    unasked = [sink.name for query in queries for sink in query.sinks if _sink(sink).answers and not _sink(sink).recalls_alone]
    if unasked:
        named = ", ".join(f"`{name}`" for name in unasked)
        recorder.note(options.worded(f"only Spark can ask what {named} holds; `--redeliver` does, and delivers what is missing"))
    recorder.state("done")
    return True


def _compare_targets(
    topology: Topology, queries: Sequence[QueryPlan], checkpoint: Checkpoint, options: RunOptions, recorder: Recorder
) -> None:
    lacks = []
    for query in queries:
        progress = checkpoint.query(query.name)
        deliveries = Deliveries(checkpoint, progress)
        asking = _Asking(topology, checkpoint, progress)
        found = deliveries.lacking(list(_askable(query)), asking.epoch_of, asking.recall)
        if found and options.accept_target:
            deliveries.accept(found)
            recorder.warn(f"accepted as missing in the target: {', '.join(f'`{lack.sink.name}` {lack.named}' for lack in found)}")
        else:
            lacks += found
    if lacks:
        raise RunError([lack.diagnostic() for lack in lacks])


def _askable(query: QueryPlan) -> Iterator[Node]:
    return (sink for sink in query.sinks if _sink(sink).answers and _sink(sink).recalls_alone)


@dataclass(frozen=True, slots=True)
class _Asking:
    """A query whose targets are asked outside of a run."""

    topology: Topology
    checkpoint: Checkpoint
    query: QueryCheckpoint

    def epoch_of(self, sink: Node, number: int, digest: str) -> Epoch:
        context = NodeContext(sink.name, self.topology.directory, self.checkpoint.node(sink.name), pipeline=self.topology.name)
        return Epoch(self.query.query_id(), sink.name, number, digest, "", context)

    def recall(self, sink: Node, epoch: Epoch) -> LedgerEntry | None:
        try:
            return _sink(sink).recall(None, epoch)
        except Exception as error:
            from millstream.engine.failures import translate  # it imports PySpark, which a job that is done need not wait for

            raise translate(error, [sink], sink.name, Redactor(secrets_of(self.topology)), self.topology.name) from error


def _sink(node: Node) -> Sink:
    assert isinstance(node.component, Sink)
    return node.component


def _unbegun(query: QueryPlan) -> Diagnostic:
    sinks = ", ".join(f"`{sink.name}`" for sink in query.sinks)
    message = f"this job was done; it was to be done again, and that failed before query `{query.name}` read anything"
    return Diagnostic("MS167", message, query.root.span, help=f"`--again` does it from the start, and {sinks} will receive rows again")


def _refusal(queries: list[QueryPlan], changed: dict[str, list[Change]], ends: dict[str, str | None]) -> Diagnostic:
    first = changed[queries[0].name][0]
    nodes = [node for query in queries for node in (*query.nodes, *query.sinks)]
    sinks = ", ".join(f"`{sink.name}`" for query in queries for sink in query.sinks)
    return Diagnostic(
        "MS147",
        f"this job was done at {ends[queries[0].name]}, and its plan has changed since; nothing was done",
        next((node.span for node in nodes if node.name == first.node), None),
        detail="\n".join(f"~ {change.text}" for found in changed.values() for change in found),
        help=f"`--again` does it from the start, and {sinks} will receive rows again; or give the pipeline a new `name`",
    )
