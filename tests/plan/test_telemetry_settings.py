"""What a run reports, and how often: mistakes that would flood a receiver, or take the place of a label, are refused."""

from __future__ import annotations

import pytest

from millstream.inspector.exported_metrics import METRICS
from millstream.plan.labels import RESERVED
from millstream.spec.loader import loads


def errors(settings: str, node: str = "") -> list[str]:
    text = f"""
sources: {{g: {{type: generator, rows: 1, fields: {{id: {{type: sequence}}}}{node}}}}}
sinks: {{out: {{type: blackhole, from: g}}}}
settings: {{telemetry: {settings}}}
"""
    return [finding.message for finding in loads(text).errors]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{otlp: {endpoint: 'http://127.0.0.1:1', metrics_every: 0s}}", "at least|shortest time"),
        ("{lineage: {file: l.jsonl, every: 10ms}}", "shortest time"),
        ("{otlp: {endpoint: 'http://127.0.0.1:1/v1/metrics/'}}", "is added to the address"),
        ("{labels: {pipeline: x}}", "metrics have a label `pipeline` of their own"),
        ("{labels: {le: x}}", "metrics have a label `le` of their own"),
        ("{labels: {a b: x}}", "no name of a label"),
    ],
)
def test_mistakes(settings: str, said: str) -> None:
    (message,) = errors(settings)
    assert any(part in message for part in said.split("|")), message


def test_labels_of_nodes_are_checked_as_well() -> None:
    (message,) = errors("{}", ", telemetry: {labels: {node: x}}")
    assert "metrics have a label `node` of their own" in message


def test_good_settings_are_taken() -> None:
    assert errors("{labels: {team: shop}, otlp: {endpoint: 'http://127.0.0.1:1/otlp', metrics_every: 1s}}") == []


def test_all_labels_of_metrics_are_reserved() -> None:
    assert {label for metric in METRICS for label in metric.labels} <= RESERVED
