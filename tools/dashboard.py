"""The Grafana dashboard in `ops/grafana/`, from a table of its panels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

_CHOSEN = 'pipeline=~"$pipeline"'
_WIDTH, _HEIGHT = 24, 7
_RATE = "[$__rate_interval]"
_DURATIONS = f"sum by (pipeline, query, le) (rate(millstream_query_epoch_duration_seconds_bucket{{}}{_RATE}))"
_HITS, _MISSES = (f"rate(millstream_node_lookup_{name}_total{{}}{_RATE})" for name in ("hits", "misses"))
_OF_PIPELINE = "+ on (instance) group_left (pipeline) 0 * millstream_run_info{}"
"""Gives a metric of a process the name of its pipeline."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture; `METRIC{}` in its expressions becomes the metric of the chosen pipelines."""

    title: str
    unit: str
    description: str
    queries: tuple[tuple[str, str], ...]
    """PromQL and its legend."""
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    width: int = 8


PANELS = (
    Panel("Status", "none", "1: the status that the run has.", (("millstream_run_status{} == 1", "{{pipeline}}: {{status}}"),), "stat"),
    Panel(
        "Oldest progress",
        "s",
        "Since the last epoch has ended.",
        (("max by (pipeline) (millstream_query_progress_age_seconds{})", "{{pipeline}}"),),
        "stat",
    ),
    Panel(
        "Rejected rows in the last hour",
        "short",
        "Rows that nodes could not handle.",
        (("sum by (pipeline) (increase(millstream_node_rows_rejected_total{}[1h]))", "{{pipeline}}"),),
        "stat",
    ),
    Panel(
        "Rows read and written per second",
        "rps",
        "By source and sink.",
        (
            ('sum by (pipeline, node) (rate(millstream_node_rows_out_total{kind="source"}[$__rate_interval]))', "{{node}} read"),
            ('sum by (pipeline, node) (rate(millstream_node_rows_in_total{kind="sink"}[$__rate_interval]))', "{{node}} written"),
        ),
        width=12,
    ),
    Panel(
        "Duration of epochs",
        "s",
        "From the start of the work to the last commit.",
        (
            (f"histogram_quantile(0.5, {_DURATIONS})", "{{query}} p50"),
            (f"histogram_quantile(0.99, {_DURATIONS})", "{{query}} p99"),
        ),
        width=12,
    ),
    Panel(
        "Waiting rows",
        "short",
        "Rows that a source had when the last epoch was planned.",
        (("millstream_node_rows_waiting{}", "{{node}}"),),
    ),
    Panel("Lag", "s", "How long the rows of the running epoch have waited.", (("millstream_query_lag_seconds{}", "{{query}}"),)),
    Panel("Watermark behind the clock", "s", "For queries with event times.", (("millstream_query_watermark_lag_seconds{}", "{{query}}"),)),
    Panel(
        "Rows that are not in the result",
        "rps",
        "Rejected, late, and lost before they were read.",
        (
            ("sum by (pipeline, node) (rate(millstream_node_rows_rejected_total{}[$__rate_interval]))", "{{node}} rejected"),
            ("sum by (pipeline, node) (rate(millstream_node_rows_late_total{}[$__rate_interval]))", "{{node}} late"),
            ("sum by (pipeline, node) (rate(millstream_node_rows_lost_total{}[$__rate_interval]))", "{{node}} lost"),
        ),
    ),
    Panel(
        "State",
        "short",
        "Keys, or rows of joins.",
        (("millstream_node_state_rows{}", "{{node}}"),),
    ),
    Panel("Memory of the state", "bytes", "What the state takes.", (("millstream_node_state_memory_bytes{}", "{{node}}"),)),
    Panel(
        "Epochs per second",
        "ops",
        "Finished epochs, and those that a sink held already.",
        (
            ("sum by (pipeline, query) (rate(millstream_query_epochs_total{}[$__rate_interval]))", "{{query}}"),
            ("sum by (pipeline, query) (rate(millstream_query_epochs_skipped_total{}[$__rate_interval]))", "{{query}} held already"),
        ),
    ),
    Panel(
        "Restarts",
        "short",
        "After temporary failures.",
        (("sum by (pipeline) (increase(millstream_query_restarts_total{}[1h]))", "{{pipeline}}"),),
    ),
    Panel(
        "Lookups with a match",
        "percentunit",
        "Of the rows that were looked up.",
        ((f"{_HITS} / ({_HITS} + {_MISSES})", "{{node}}"),),
    ),
    Panel(
        "Memory of the processes",
        "bytes",
        "The Python process that drives the run, and the JVM.",
        (
            (f"millstream_python_process_resident_memory_bytes {_OF_PIPELINE}", "{{pipeline}} Python"),
            (f"millstream_jvm_process_resident_memory_bytes {_OF_PIPELINE}", "{{pipeline}} JVM"),
        ),
        width=12,
    ),
    Panel(
        "Cores in use",
        "short",
        "By the two processes.",
        (
            (f"rate(millstream_python_process_cpu_seconds_total{_RATE}) {_OF_PIPELINE}", "{{pipeline}} Python"),
            (f"rate(millstream_jvm_process_cpu_seconds_total{_RATE}) {_OF_PIPELINE}", "{{pipeline}} JVM"),
        ),
        width=12,
    ),
)


def dashboard() -> str:
    found = {
        "title": "Millstream",
        "uid": "millstream",
        "tags": ["millstream"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source(), _pipelines()]},
        "panels": _placed(),
    }
    return json.dumps(found, indent=1) + "\n"


def expressions() -> list[tuple[str, str]]:
    """Title of the panel and PromQL, for every query of the dashboard."""
    return [(panel.title, _chosen(query)) for panel in PANELS for query, _ in panel.queries]


def _chosen(query: str) -> str:
    return query.replace("{}", f"{{{_CHOSEN}}}").replace("{kind=", f"{{{_CHOSEN}, kind=")


def _placed() -> list[dict[str, Any]]:
    """The panels from left to right, in rows."""
    found, x, y = [], 0, 0
    for number, panel in enumerate(PANELS, 1):
        if x + panel.width > _WIDTH:
            x, y = 0, y + _HEIGHT
        found.append(_panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": _HEIGHT}))
        x += panel.width
    return found


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    queries = [
        {"refId": chr(ord("A") + place), "datasource": source, "expr": _chosen(query), "legendFormat": legend}
        for place, (query, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"textMode": "value_and_name"} if panel.kind == "stat" else {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": queries,
    }


def _data_source() -> dict[str, Any]:
    return {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _pipelines() -> dict[str, Any]:
    return {
        "name": "pipeline",
        "label": "Pipeline",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": "label_values(millstream_run_info, pipeline)",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
