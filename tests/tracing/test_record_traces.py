"""Traced records of a run reach a collector: which ones, through which nodes, and with the same ids when they are read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.collector import Received, collector

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    name: shop
    sources:
      orders: {{type: generator, rows: {rows}, rows_per_epoch: 1000, fields: {{id: {{type: sequence}}}}, telemetry: {{trace: {trace}}}}}
    transforms:
      {transform}
    sinks:
      out: {{type: file, from: big, path: out, format: json}}
    settings: {{telemetry: {{otlp: {{endpoint: "{endpoint}"}}}}, checkpoint: {checkpoint}}}
"""
NAMED = 'big: {type: sql, from: orders, sql: "SELECT id * 2 AS twice FROM orders WHERE id % 2 = 0"}'
BIG = 'big: {type: sql, from: orders, sql: "SELECT *, id * 2 AS twice FROM orders WHERE id % 2 = 0"}'
Traces = Callable[..., Received]


@pytest.fixture
def traces(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Traces:
    """Run a pipeline; what the collector received."""
    runs = Counter[str]()

    def traced(trace: str, transform: str = BIG, rows: int = 2000) -> Received:
        runs["runs"] += 1
        with collector() as received:
            text = TEXT.format(rows=rows, trace=trace, transform=transform, endpoint=received.endpoint, checkpoint=f"ck{runs['runs']}")
            run(pipeline(text.replace("path: out", f"path: out{runs['runs']}")))
        return received

    return traced


def by_kind(received: Received, name: str) -> list[Any]:
    """The spans of records at a node."""
    return [span for span in received.spans() if span.name == name and "millstream.traced_records" not in {a.key for a in span.attributes}]


def value(span: Any, name: str) -> str:
    return next((item.value.string_value for item in span.attributes if item.key == name), "")


def test_a_share_of_the_records_is_traced_through_every_node(traces: Traces, tmp_path: Path) -> None:
    received = traces("{ratio: 0.1}")
    roots, big, out = (by_kind(received, name) for name in ("orders", "big", "out"))
    assert 150 < len(roots) < 250  # binomial: 200 ± 13
    assert 0 < len(big) == len(out) < len(roots)
    parents = {root.span_id: root for root in roots}
    assert len(parents) == len(roots)
    for span in (*big, *out):
        root = parents[span.parent_span_id]
        assert span.trace_id == root.trace_id
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
    assert "traceparent" not in next(tmp_path.glob("out1/*.json")).read_text()


def test_an_epoch_has_spans_for_its_sinks_and_links_to_its_records(traces: Traces) -> None:
    spans = traces("{ratio: 0.1}").spans()
    epochs = [span for span in spans if span.name == "epoch"]
    assert len(epochs) == 2
    for epoch in epochs:
        children = {span.name: span for span in spans if span.parent_span_id == epoch.span_id}
        assert set(children) == {"stage out", "commit out", "orders", "big"}
        roots = {span.span_id for span in spans if span.name == "orders"}
        assert {link.span_id for link in children["orders"].links} <= roots


def test_the_same_records_have_the_same_ids_again(traces: Traces) -> None:
    found = [traces("{ratio: 0.05}") for _ in range(2)]
    nodes = ("orders", "big", "out")
    first, second = (sorted((s.name, s.trace_id, s.span_id) for name in nodes for s in by_kind(each, name)) for each in found)
    assert len(first) > 100 and first == second


def test_always_and_a_condition_choose_records(traces: Traces) -> None:
    assert len(by_kind(traces("always", rows=50), "orders")) == 50
    shown = by_kind(traces("{where: id >= 40, payload: 12}", rows=50), "orders")
    assert sorted(value(span, "millstream.payload") for span in shown) == [f'{{"id":{n}}}' for n in range(40, 50)]


def test_a_payload_is_cut_and_absent_unless_wanted(traces: Traces) -> None:
    (span,) = by_kind(traces("{where: id = 4, payload: 10}", rows=50), "big")
    assert value(span, "millstream.payload") == '{"id":4,"t'
    (span,) = by_kind(traces("{where: id = 4}", rows=50), "big")
    assert value(span, "millstream.payload") == ""


def test_a_record_that_is_filtered_out_has_a_span_that_ends(traces: Traces) -> None:
    received = traces("{where: id = 3}", rows=50)
    assert len(by_kind(received, "orders")) == 1
    assert by_kind(received, "big") == by_kind(received, "out") == []


@pytest.mark.parametrize(
    "step",
    [
        NAMED,
        'big: {type: sql, sql: "SELECT id AS twice FROM orders UNION ALL SELECT 2 * id FROM orders"}',
        "big: {type: select, from: orders, columns: {twice: id * 2}}",
        "big: {type: filter, from: orders, where: id > 0}",
        "big: {type: union, from: [orders, orders]}",
    ],
)
def test_the_context_needs_no_name(traces: Traces, step: str) -> None:
    received = traces("{where: id = 4}", step, rows=50)
    assert len(by_kind(received, "out")) == 1


def test_what_leaves_a_function_with_other_rows_has_no_trace(traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "fewer.py").write_text("def first(table):\n    return table.slice(0, 7)\n")
    python = "big: {type: python, from: orders, function: 'fewer.py:first', schema: {id: int64}}"
    received = traces("always", python, rows=50)
    assert len(by_kind(received, "orders")) == 50
    assert by_kind(received, "big") == by_kind(received, "out") == []


def test_a_window_links_the_records_that_it_joins(traces: Traces) -> None:
    counted = 'big: {type: sql, sql: "SELECT id % 3 AS k, count(*) AS n FROM orders GROUP BY id % 3", emit: final}'
    received = traces("{where: id < 30}", counted, rows=100)
    (joined,) = [span for span in received.spans() if span.name == "big" and span.links]
    roots = {(span.trace_id, span.span_id) for span in by_kind(received, "orders")}
    assert len(roots) == 30
    assert {(link.trace_id, link.span_id) for link in joined.links} == roots


def test_only_so_many_records_of_an_epoch_are_reported(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.engine.lowering.traces.RECORDS", 7)
    received = traces("always", rows=1000)
    assert 0 < len(by_kind(received, "orders")) <= 7


def test_in_the_long_run_only_so_many_records_of_a_second_are_reported(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.engine.lowering.traces.RECORDS", 7)
    monkeypatch.setattr("millstream.engine.lowering.traces.PER_SECOND", 0)
    received = traces("always", rows=3000)
    assert [span.name for span in received.spans()].count("epoch") == 3
    assert len(by_kind(received, "orders")) == 7


def test_a_python_node_has_a_span_of_its_time(traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\n\ndef wait(table):\n    time.sleep(0.3)\n    return table\n")
    python = "big: {type: python, from: orders, function: 'slow.py:wait', schema: {id: int64}}"
    (span,) = by_kind(traces("{where: id = 4}", python, rows=50), "big")
    assert span.end_time_unix_nano - span.start_time_unix_nano >= 0.3e9


def test_without_the_tap_there_are_no_records(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the other tests see comes from the taps."""
    monkeypatch.setattr("millstream.engine.lowering.traces.Taps.observe", lambda taps, frame, node, length, parent=None: frame)
    monkeypatch.setattr("millstream.engine.lowering.nodes.Lowering.with_tap", lambda lowering, node, frame: frame)
    received = traces("always", rows=50)
    assert by_kind(received, "orders") == []
    assert [span.name for span in received.spans()].count("epoch") == 1
