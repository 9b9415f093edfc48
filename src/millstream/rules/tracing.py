"""Checks on traces: only sources decide what is traced, and their conditions can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.nodes import SourceNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.plan.tracing import TRACED, sampling_of
from millstream.rules.options import diagnostic_of
from millstream.sql.check.expressions import row_problems
from millstream.sql.check.query import Query, reads_clock

_FIELD = "telemetry.trace"


def traces_begin_at_sources(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.nodes:
        sampling = sampling_of(node.options.telemetry.trace)
        if sampling is None:
            continue
        if not isinstance(node, SourceNode):
            help_ = "set it on the source: the trace of a record goes on through the nodes"
            place = node.place("telemetry", "trace")
            yield Diagnostic("MS006", f"{node.kind} `{node.name}` takes no `telemetry.trace`", place, help=help_, node=node.name)
        elif sampling.where is not None:
            text = str(sampling.where)
            for problem in row_problems([(f"{_FIELD}.where", text)], schemas.get(node.name)):
                yield diagnostic_of(node, problem)
            if not Query(text, None).deterministic or reads_clock(text):
                message = f"`telemetry.trace.where` of source `{node.name}` must decide the same when an epoch is repeated"
                help_ = "leave out random values and the clock; `ratio: 0.1` traces a share of the records"
                yield Diagnostic("MS008", message, node.place("telemetry", "trace", "where"), help=help_, node=node.name)


def the_column_of_traces_is_free(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    for node in topology.sources:
        schema = schemas.get(node.name)
        if schema is not None and TRACED in schema.names:
            message = f"source `{node.name}` has a column `{TRACED}`, a name that is reserved for traces"
            yield Diagnostic("MS008", message, node.place("schema"), help="give the column another name in the data", node=node.name)
