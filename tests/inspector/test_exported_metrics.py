"""Metrics: the names and labels of the table, absent instead of 0, and counters that never go back."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families as parse

from millstream.inspector.attended import AttendedRun
from millstream.inspector.exported_metrics import METRICS
from millstream.inspector.exposition import exposition
from millstream.observe.facts import EpochFacts, Restart, StateFacts, WatermarkFacts

Attend = Callable[..., tuple[AttendedRun, str]]
LABELLED = """
name: shop
sources: {g: {type: generator, fields: {id: {type: sequence}}, telemetry: {labels: {team: "a \\"b\\""}}}}
sinks: {out: {type: blackhole, from: g}}
settings: {telemetry: {labels: {stage: test}}}
"""


def shown(run: AttendedRun) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    families = parse(exposition(run).decode())
    return {
        each.name: {tuple(sorted({**sample.labels, "": sample.name}.items())): sample.value for sample in each.samples} for each in families
    }


def full(run: AttendedRun) -> None:
    recorder = run.recorder
    recorder.read("g", {"g": 10})
    recorder.add("g", "source", hits=1, misses=2)
    recorder.set("g", "source", waiting=5, state=StateFacts(1, 2, 3))
    recorder.restart(Restart("g", "why", 1, 0.0))
    recorder.epoch(EpochFacts("g", 3, 0.02, {"out": 7}, {"g": 1}, ("out",), ("out",), {"g": 2}, WatermarkFacts(1000, 1.5, "g"), {"g": 1}))


def test_all_metrics_of_the_table_are_shown_when_they_are_known(attend: Attend) -> None:
    run, _ = attend(LABELLED)
    full(run)
    found = shown(run)
    assert {each.prometheus for each in METRICS} <= set(found)
    for metric in METRICS:
        for labels in found[metric.prometheus]:
            names = {name for name, _ in labels} - {"", "le"}
            assert names == {"pipeline", "stage", *metric.labels, *({"team"} if "node" in metric.labels else set())}, metric.name


def test_what_is_not_known_is_absent(attend: Attend) -> None:
    run, _ = attend(LABELLED)
    run.recorder.set("g", "source", waiting=None)
    found = shown(run)
    assert not found["millstream_node_rows_out"]
    assert not found["millstream_node_rows_waiting"]
    assert not found["millstream_query_watermark_lag_seconds"]


def test_the_histogram_adds_up(attend: Attend) -> None:
    run, _ = attend(LABELLED)
    for seconds in (0.001, 0.02, 0.02, 400.0):
        run.recorder.epoch(EpochFacts("g", 1, seconds, {}, {}))
    found = shown(run)["millstream_query_epoch_duration_seconds"]
    buckets = {dict(labels).get("le"): value for labels, value in found.items() if dict(labels)[""].endswith("_bucket")}
    assert (buckets["0.005"], buckets["0.025"], buckets["300.0"], buckets["+Inf"]) == (1, 3, 3, 4)
    assert [value for labels, value in found.items() if dict(labels)[""].endswith("_sum")] == [400.041]


def test_counters_only_grow_while_epochs_fail_and_restart(attend: Attend) -> None:
    run, _ = attend(LABELLED)
    before: dict[tuple[str, object], float] = {}
    for number in range(5):
        full(run)
        run.recorder.query_state("g", "restarting" if number % 2 else "running")
        now = {
            (name, labels): value
            for name, samples in shown(run).items()
            if name.startswith("millstream_")
            for labels, value in samples.items()
            if dict(labels)[""].endswith(("_total", "_bucket", "_sum", "_count"))
        }
        assert all(now[key] >= value for key, value in before.items())
        before = now


def test_the_process_of_python_is_measured(attend: Attend) -> None:
    run, _ = attend(LABELLED)
    assert shown(run)["millstream_python_process_resident_memory_bytes"]
