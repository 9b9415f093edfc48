"""Streaming pipelines in Python or YAML, exactly once, on Spark.

The public names. They load on first use, so that `import millstream` costs nothing and knows no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.api.environment import StreamEnvironment
    from millstream.api.keyed import KeyedStream, WindowedStream
    from millstream.api.stream import DataStream, Flow, Split
    from millstream.connectors.blackhole.sink import BlackholeSink
    from millstream.connectors.file.committed import committed_files, read_committed
    from millstream.connectors.file.sink import FileSink
    from millstream.connectors.file.source import FileSource
    from millstream.connectors.generator.source import GeneratorSource
    from millstream.connectors.kafka.sink import KafkaSink
    from millstream.connectors.kafka.source import KafkaSource
    from millstream.connectors.memory.sink import MemorySink
    from millstream.connectors.memory.source import MemorySource
    from millstream.connectors.postgres.aggregate import PostgresAggregateSink
    from millstream.connectors.postgres.sink import PostgresSink
    from millstream.connectors.postgres.source import PostgresSource
    from millstream.connectors.print.sink import PrintSink
    from millstream.errors import Diagnostic, MillstreamError
    from millstream.observe.report import Report
    from millstream.plan.aggregates import (
        approx_count_distinct,
        approx_percentile,
        avg,
        collect,
        collect_set,
        count,
        count_distinct,
        first,
        last,
        max_,
        median,
        min_,
        percentile,
        stddev,
        sum_,
        top_k,
        variance,
    )
    from millstream.plan.cells import KeyState
    from millstream.plan.declarations import function
    from millstream.plan.expressions import Expr, col, func, lit, sql
    from millstream.plan.processing import BucketFunction, BucketResult, Moment, ProcessFunction, Timers
    from millstream.plan.running import RunOptions
    from millstream.plan.settings import Settings
    from millstream.plan.states import ListState, MapState, ValueState
    from millstream.plan.time import EventTime
    from millstream.plan.topology import Topology
    from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow
    from millstream.spec.files import load_pipeline

_HOMES = {
    "StreamEnvironment": "api.environment",
    "KeyedStream": "api.keyed",
    "WindowedStream": "api.keyed",
    "DataStream": "api.stream",
    "Flow": "api.stream",
    "Split": "api.stream",
    "BlackholeSink": "connectors.blackhole.sink",
    "committed_files": "connectors.file.committed",
    "read_committed": "connectors.file.committed",
    "FileSink": "connectors.file.sink",
    "FileSource": "connectors.file.source",
    "GeneratorSource": "connectors.generator.source",
    "KafkaSink": "connectors.kafka.sink",
    "KafkaSource": "connectors.kafka.source",
    "MemorySink": "connectors.memory.sink",
    "MemorySource": "connectors.memory.source",
    "PostgresAggregateSink": "connectors.postgres.aggregate",
    "PostgresSink": "connectors.postgres.sink",
    "PostgresSource": "connectors.postgres.source",
    "PrintSink": "connectors.print.sink",
    "Diagnostic": "errors",
    "MillstreamError": "errors",
    "Report": "observe.report",
    "function": "plan.declarations",
    "approx_count_distinct": "plan.aggregates",
    "approx_percentile": "plan.aggregates",
    "avg": "plan.aggregates",
    "collect": "plan.aggregates",
    "collect_set": "plan.aggregates",
    "count": "plan.aggregates",
    "count_distinct": "plan.aggregates",
    "first": "plan.aggregates",
    "last": "plan.aggregates",
    "max_": "plan.aggregates",
    "median": "plan.aggregates",
    "min_": "plan.aggregates",
    "percentile": "plan.aggregates",
    "stddev": "plan.aggregates",
    "sum_": "plan.aggregates",
    "top_k": "plan.aggregates",
    "variance": "plan.aggregates",
    "Expr": "plan.expressions",
    "col": "plan.expressions",
    "func": "plan.expressions",
    "lit": "plan.expressions",
    "sql": "plan.expressions",
    "BucketFunction": "plan.processing",
    "BucketResult": "plan.processing",
    "Moment": "plan.processing",
    "ProcessFunction": "plan.processing",
    "Timers": "plan.processing",
    "KeyState": "plan.cells",
    "ListState": "plan.states",
    "MapState": "plan.states",
    "ValueState": "plan.states",
    "RunOptions": "plan.running",
    "Settings": "plan.settings",
    "EventTime": "plan.time",
    "Topology": "plan.topology",
    "SessionWindow": "plan.windows",
    "SlidingWindow": "plan.windows",
    "TumblingWindow": "plan.windows",
    "load_pipeline": "spec.files",
}

__all__ = [
    "BlackholeSink",
    "BucketFunction",
    "BucketResult",
    "DataStream",
    "Diagnostic",
    "EventTime",
    "Expr",
    "FileSink",
    "FileSource",
    "Flow",
    "GeneratorSource",
    "KafkaSink",
    "KafkaSource",
    "KeyState",
    "KeyedStream",
    "ListState",
    "MapState",
    "MemorySink",
    "MemorySource",
    "MillstreamError",
    "Moment",
    "PostgresAggregateSink",
    "PostgresSink",
    "PostgresSource",
    "PrintSink",
    "ProcessFunction",
    "Report",
    "RunOptions",
    "SessionWindow",
    "Settings",
    "SlidingWindow",
    "Split",
    "StreamEnvironment",
    "Timers",
    "Topology",
    "TumblingWindow",
    "ValueState",
    "WindowedStream",
    "approx_count_distinct",
    "approx_percentile",
    "avg",
    "col",
    "collect",
    "collect_set",
    "committed_files",
    "count",
    "count_distinct",
    "first",
    "func",
    "function",
    "last",
    "lit",
    "load_pipeline",
    "max_",
    "median",
    "min_",
    "percentile",
    "read_committed",
    "sql",
    "stddev",
    "sum_",
    "top_k",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("millstream")
    if name not in _HOMES:
        raise AttributeError(f"module 'millstream' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"millstream.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names, for completion, before any of them has been loaded."""
    return [*__all__, "__version__"]
