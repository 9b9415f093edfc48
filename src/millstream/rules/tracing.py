"""Checks on traces: only sources decide what is traced, and their conditions can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.nodes import SourceNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology
from millstream.plan.tracing import sampling_of
from millstream.rules.options import diagnostic_of
from millstream.sql.check.expressions import row_problems

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
            for problem in row_problems([(f"{_FIELD}.where", str(sampling.where))], schemas.get(node.name)):
                yield diagnostic_of(node, problem)
