"""Streaming pipelines in Python or YAML, exactly once, on Spark.

The public names. They load on first use, so that `import millstream` costs nothing and knows no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.api.environment import StreamEnvironment
    from millstream.api.keyed import KeyedStream, TumblingWindow, WindowedStream
    from millstream.api.stream import DataStream, Flow, Split
    from millstream.connectors.blackhole.sink import BlackholeSink
    from millstream.connectors.file.committed import committed_files, read_committed
    from millstream.connectors.file.sink import FileSink
    from millstream.connectors.file.source import FileSource
    from millstream.connectors.generator.source import GeneratorSource
    from millstream.connectors.memory.sink import MemorySink
    from millstream.connectors.memory.source import MemorySource
    from millstream.connectors.print.sink import PrintSink
    from millstream.errors import Diagnostic, MillstreamError
    from millstream.observe.report import Report
    from millstream.plan.expressions import Expr, col, func, lit, sql
    from millstream.plan.processing import BucketFunction, BucketResult, Moment, ProcessFunction, Timers
    from millstream.plan.running import RunOptions
    from millstream.plan.settings import Settings
    from millstream.plan.states import KeyState, ListState, MapState, ValueState
    from millstream.plan.topology import Topology
    from millstream.spec.files import load_pipeline

_HOMES = {
    "StreamEnvironment": "api.environment",
    "KeyedStream": "api.keyed",
    "TumblingWindow": "api.keyed",
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
    "MemorySink": "connectors.memory.sink",
    "MemorySource": "connectors.memory.source",
    "PrintSink": "connectors.print.sink",
    "Diagnostic": "errors",
    "MillstreamError": "errors",
    "Report": "observe.report",
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
    "KeyState": "plan.states",
    "ListState": "plan.states",
    "MapState": "plan.states",
    "ValueState": "plan.states",
    "RunOptions": "plan.running",
    "Settings": "plan.settings",
    "Topology": "plan.topology",
    "load_pipeline": "spec.files",
}

__all__ = [
    "BlackholeSink",
    "BucketFunction",
    "BucketResult",
    "DataStream",
    "Diagnostic",
    "Expr",
    "FileSink",
    "FileSource",
    "Flow",
    "GeneratorSource",
    "KeyState",
    "KeyedStream",
    "ListState",
    "MapState",
    "MemorySink",
    "MemorySource",
    "MillstreamError",
    "Moment",
    "PrintSink",
    "ProcessFunction",
    "Report",
    "RunOptions",
    "Settings",
    "Split",
    "StreamEnvironment",
    "Timers",
    "Topology",
    "TumblingWindow",
    "ValueState",
    "WindowedStream",
    "col",
    "committed_files",
    "func",
    "lit",
    "load_pipeline",
    "read_committed",
    "sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'millstream' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"millstream.{_HOMES[name]}"), name)
