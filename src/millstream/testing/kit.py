"""The test kit: a pipeline with rows given to its sources, and the rows that reach its sinks.

    def test_large_orders_pass():
        out = run("orders.yaml", inputs={"raw.orders": [{"id": 1, "amount": 2000}, {"id": 2, "amount": 5}]})
        assert out["out"] == [{"id": 1, "amount": 2000}]

The real plan runs on real Spark: only the ends are replaced by memory. One session serves all tests of a process.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.memory.sink import MemorySink
from millstream.connectors.memory.source import MemorySource
from millstream.engine.engine import SparkEngine
from millstream.engine.sessions import INCREMENTAL
from millstream.errors import Diagnostic, SpecError, nearest
from millstream.jvm import local_files
from millstream.jvm.jars import extras_with_jars, jar_paths
from millstream.jvm.kept_session import dismiss
from millstream.jvm.session import Session, SessionOptions, begin
from millstream.plan.nodes import AnyNode, SourceNode, make_node
from millstream.plan.run_options import RunOptions
from millstream.plan.settings import Settings
from millstream.plan.topology import Topology
from millstream.spec.files import load_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

_PAGE = "1m"
"""Aggregates and joins of a task take a page even for one row, and Spark makes pages larger the larger the heap is."""


def run(
    pipeline: str | Path | Topology,
    inputs: Mapping[str, Sequence[Row] | pa.Table],
    *,
    observe: Iterable[str] = (),
    spark: SparkSession | None = None,
) -> dict[str, list[Row]]:
    """Run a pipeline on the given rows. `observe` names further nodes whose rows are returned."""
    topology = pipeline if isinstance(pipeline, Topology) else load_pipeline(pipeline)
    _require_known(topology, inputs, observe)
    sinks = {node.name: MemorySink() for node in topology.sinks}
    taps = {name: MemorySink() for name in observe if name not in sinks}
    nodes = [_replace_ends(node, inputs, sinks) for node in topology.nodes]
    nodes += [make_node(f"{name}.observed", sink, (name,)) for name, sink in taps.items()]
    with tempfile.TemporaryDirectory(prefix="millstream-test-") as folder:
        settings = Settings(checkpoint=folder)
        report = SparkEngine(spark or session()).run(
            replace(topology, nodes=tuple(nodes), settings=settings, tests=(), side_outputs=()), RunOptions()
        )
    if report.state == "stopped":
        raise KeyboardInterrupt  # a part of the rows would look like a result
    return {name: sink.rows() for name, sink in (sinks | taps).items()}


def session() -> SparkSession:
    """The shared session of all tests in this process, with the jars of every extra that is in the cache."""
    return open_session().spark


@lru_cache(maxsize=1)
def open_session() -> Session:
    """The shared session with its JVM."""
    logs = Path(tempfile.mkdtemp(prefix="millstream-logs-"))
    present = tuple(extra for extra in extras_with_jars() if all(located.path for located in jar_paths([extra])))
    conf = {**local_files.CHECKSUMMED, **INCREMENTAL, "spark.buffer.pageSize": _PAGE}
    options = SessionOptions("millstream-tests", "local[2]", conf, "short", present, logs)
    dismiss()
    opened = begin(options).finish()
    local_files.write_no_checksum_files(opened.spark)
    atexit.register(opened.close)
    return opened


def _replace_ends(node: AnyNode, inputs: Mapping[str, Sequence[Row] | pa.Table], sinks: Mapping[str, MemorySink]) -> AnyNode:
    if node.name in sinks:
        return make_node(node.name, sinks[node.name], node.inputs, node.options, node.span, node.spans)
    if not isinstance(node, SourceNode):
        return node
    rows = inputs.get(node.name, ())
    declared = node.component.output()
    if isinstance(rows, pa.Table):
        return replace(node, component=MemorySource(batches=tuple(rows.to_batches()), schema=declared or rows.schema))
    return replace(node, component=MemorySource(rows=tuple(rows), schema=_schema(declared, rows)))


def _schema(declared: pa.Schema | None, rows: Sequence[Row]) -> pa.Schema | None:
    return declared if declared is not None or rows else None


def _require_known(topology: Topology, inputs: Mapping[str, Any], observe: Iterable[str]) -> None:
    sources = {node.name for node in topology.sources}
    missing = [(name, sources, "source") for name in inputs if name not in sources]
    missing += [(name, set(topology.by_name), "node") for name in observe if name not in topology.by_name]
    if missing:
        raise SpecError(
            [Diagnostic("MS012", f"the pipeline has no {kind} `{name}`", help=nearest(name, known)) for name, known, kind in missing]
        )
