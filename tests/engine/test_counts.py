"""Rows read are the rows that a source delivered, once: however many queries read it, whatever is pushed into its scan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.engine.epoch import frames
from millstream.engine.run import execution
from millstream.observe.recorder import Recorder
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
FILTERED = """
    sources: {{o: {{type: file, path: in, format: {format}, mode: {{type: bounded}}, schema: {{id: int64, amount: int64}}}}}}
    transforms: {{t: {{type: filter, from: o, where: amount > 30}}}}
    sinks: {{out: {{type: memory, from: t}}}}
"""
ROWS = [{"id": number, "amount": number * 10} for number in range(1, 5)]
MEMORY = '{type: memory, rows: [{id: 1, a: "1"}, {id: 2, a: x}, {id: 3, a: "0"}]}'


def write(format: str) -> None:
    Path("in").mkdir()
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), "in/a.parquet", row_group_size=1)
    elif format == "csv":
        Path("in/a.csv").write_text("id,amount\n" + "".join(f"{row['id']},{row['amount']}\n" for row in ROWS))
    else:
        Path("in/a.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_rows_that_a_filter_drops_were_read_too(pipeline: Callable[..., Topology], run: Callable[..., Report], format: str) -> None:
    topology = pipeline(FILTERED.format(format=format))
    write(format)
    report = run(topology)
    assert (report.nodes["o"].rows_out, report.nodes["out"].rows_in) == (4, 1)


def test_a_filter_in_the_parser_would_hide_them(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_COUNTING", {})
    topology = pipeline(FILTERED.format(format="json"))
    write("json")
    assert run(topology).nodes["o"].rows_out == 1


def test_a_source_of_several_queries_is_counted_once(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline("""
        sources: {o: {type: memory, rows: [{id: 1}, {id: 2}, {id: 3}], rows_per_epoch: 2}}
        transforms:
          a: {type: aggregate, from: o, key_by: id, aggregate: {n: count(*)}}
          b: {type: aggregate, from: o, key_by: id, aggregate: {m: max(id)}}
        sinks: {x: {type: memory, from: a}, y: {type: memory, from: b}, z: {type: memory, from: o}}
    """)
    assert run(topology).nodes["o"].rows_out == 3


def test_bad_rows_are_counted_by_node_where_nodes_share_a_sink(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    report = run(
        pipeline(f"""
        sources: {{raw: {MEMORY}}}
        transforms:
          typed: {{type: sql, sql: "SELECT id, CAST(a AS INT) AS a FROM raw", on_error: {{dead_letter: bad}}}}
          inv: {{type: sql, sql: "SELECT id, 1 / a AS a FROM typed", on_error: {{dead_letter: bad}}}}
        sinks: {{bad: {{type: memory}}, out: {{type: memory, from: inv}}}}
    """)
    )
    assert [report.nodes[name].rejected for name in ("typed", "inv")] == [1, 1]
    assert (report.nodes["raw"].rows_out, report.nodes["bad"].rows_in, report.nodes["out"].rows_in) == (3, 2, 1)


def test_a_frame_that_is_kept_is_read_once(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    write_later = pipeline("""
        sources: {raw: {type: file, path: in, format: json, mode: {type: bounded}, schema: {id: int64, amount: int64}}}
        transforms: {t: {type: sql, sql: "SELECT id, 1 / (amount - 20) AS a FROM raw", on_error: {dead_letter: bad}}}
        sinks: {bad: {type: memory}, out: {type: memory, from: t}}
    """)
    write("json")
    report = run(write_later)
    assert (report.nodes["raw"].rows_out, report.nodes["t"].rows_out, report.nodes["t"].rejected) == (4, 3, 1)


def test_a_count_that_is_missing_once_is_missing_for_good() -> None:
    recorder = Recorder("p")
    for rows in (3, None, 4):
        recorder.read("q", {"s": rows})
    assert recorder.snapshot().nodes["s"].rows_out is None
    recorder.read("other", {"s": 7})
    assert recorder.snapshot().nodes["s"].rows_out == 7


def test_rows_of_a_flushed_source_are_counted_once(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    rows = "[{v: 1, at: '2024-01-01T00:00:01Z'}, {v: 2, at: '2024-01-01T00:00:02Z'}]"
    source = f"{{type: memory, rows: {rows}, schema: {{v: int64, at: timestamp}}, event_time: {{column: at, watermark: 0s}}}}"
    report = run(
        pipeline(f"""
        sources: {{o: {source}}}
        transforms: {{w: {{type: sql, sql: "SELECT window.end e, sum(v) s FROM o GROUP BY window(at, '1 minute')"}}}}
        sinks: {{out: {{type: memory, from: w}}}}
    """)
    )
    assert report.snapshot.nodes["o"].rows_out == 2


@pytest.mark.parametrize("kind", ["{type: memory", "{type: file, path: out/NAME, format: json", "{type: print"])
def test_no_job_is_run_to_count_bad_rows(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(frames, "count_rejects", lambda *_: {"typed": -1, "inv": -1, "small": -1})
    report = run(
        pipeline(f"""
        sources: {{raw: {MEMORY}}}
        transforms:
          typed: {{type: sql, sql: "SELECT id, CAST(a AS INT) AS a FROM raw", on_error: {{dead_letter: bad}}}}
          inv: {{type: sql, sql: "SELECT id, 1 / a AS a FROM typed", on_error: {{dead_letter: bad}}}}
          small: {{type: sql, sql: "SELECT CAST(a AS TINYINT) AS a FROM raw", on_error: drop}}
        sinks:
          bad: {kind.replace("NAME", "bad")}}}
          out: {kind.replace("NAME", "out")}, from: inv}}
          other: {kind.replace("NAME", "other")}, from: small}}
    """)
    )
    nodes = report.snapshot.nodes
    assert {name: nodes[name].rejected for name in ("typed", "inv", "small")} == {"typed": 1, "inv": 1, "small": 1}


def test_rows_read_are_absent_where_bad_rows_are_counted_by_a_read_of_their_own(
    pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    """A `blackhole` runs a job that Spark reports nothing of. The second read leaves out the branch of the good rows: three reads of eight
    rows would pass for four reads of six.
    """
    Path("in").mkdir()
    lines = [json.dumps({"a": a, "at": "2024-01-01T00:00:00Z"}) for a in ("1", "x", *"234567")]
    Path("in/0.json").write_text("\n".join(lines))
    topology = pipeline("""
        sources:
          o:
            type: file
            path: in
            format: json
            mode: {type: bounded}
            schema: {a: string, at: timestamp}
            event_time: {column: at, watermark: 0s}
        transforms:
          t: {type: sql, from: o, sql: "SELECT CAST(a AS INT) AS a, at FROM o", on_error: drop}
          u: {type: window, from: t, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}
        sinks: {out: {type: blackhole, from: u}}
    """)
    nodes = run(topology).snapshot.nodes
    assert (nodes["t"].rejected, nodes["o"].rows_out) == (1, None)


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_bytes_are_those_of_the_files(pipeline: Callable[..., Topology], run: Callable[..., Report], format: str) -> None:
    topology = pipeline(f"""
        sources: {{o: {{type: memory, rows_per_epoch: 2, rows: [{{a: "1"}}, {{a: x}}, {{a: "2"}}]}}}}
        sinks: {{out: {{type: file, from: o, path: out, format: {format}}}, seen: {{type: blackhole, from: o}}}}
    """)
    nodes = run(topology).snapshot.nodes
    assert nodes["out"].bytes_in == sum(path.stat().st_size for path in Path("out").glob("part-*"))
    assert nodes["seen"].bytes_in is None
