"""Streaming pipelines in Python or YAML, exactly once, on Spark.

The public names. They load on first use, so that `import millstream` costs nothing and knows no Spark. Classes of sources, transforms and
sinks are found by their entry points; `__init__.pyi`, which type checkers read, is written by `make docs`.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "api.environment": ("StreamEnvironment",),
    "api.keyed": ("KeyedStream", "WindowedStream"),
    "api.stream": ("DataStream", "Flow", "Split"),
    "connectors.file.committed": ("committed_files", "read_committed"),
    "errors": ("Diagnostic", "MillstreamError"),
    "observe.report": ("Report",),
    "plan.aggregates": (
        "approx_count_distinct",
        "approx_percentile",
        "avg",
        "collect",
        "collect_set",
        "count",
        "count_distinct",
        "first",
        "last",
        "max_",
        "median",
        "min_",
        "percentile",
        "stddev",
        "sum_",
        "top_k",
        "variance",
    ),
    "plan.components.arrow": ("ArrowSource",),
    "plan.components.arrow_sink": ("ArrowSink",),
    "plan.components.arrow_transform": ("ArrowTransform",),
    "plan.components.context": ("NodeContext",),
    "plan.components.preprocessor": ("PipelineText", "Preprocessor"),
    "plan.components.side_output": ("SideOutput",),
    "plan.components.sink": ("Epoch", "LedgerEntry"),
    "plan.components.udf": ("Udf",),
    "plan.declarations": ("function",),
    "plan.event_time": ("EventTime",),
    "plan.tracing": ("Sampling",),
    "plan.expressions": ("Expr", "col", "expr", "func", "lit"),
    "plan.run_options": ("RunOptions",),
    "plan.settings": ("Settings",),
    "plan.topology": ("Topology",),
    "plan.windows": ("SessionWindow", "SlidingWindow", "TumblingWindow"),
    "registry.mark": ("plugin",),
    "secrets": ("Secret",),
    "spec.files": ("load_pipeline",),
    "worker.plugin_tasks": ("Task", "TemporaryFailure", "WriteTask"),
    "worker.processing": ("BucketFunction", "BucketResult", "Moment", "ProcessFunction", "Timers"),
    "worker.state_cells": ("KeyState",),
    "worker.states": ("ListState", "MapState", "ValueState"),
}
"""Module → its public names."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("millstream")
    if name == "__all__":
        return sorted(_modules())
    module = None if name.startswith("_") else _modules().get(name)
    if module is None:
        raise AttributeError(f"module 'millstream' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """The public names, for completion, before any of them has been loaded."""
    return [*sorted(_modules()), "__version__"]


def _modules() -> dict[str, str]:
    """Public name → its module."""
    from millstream.registry import built_in_classes

    return {name: f"millstream.{module}" for module, names in _NAMES.items() for name in names} | built_in_classes()
