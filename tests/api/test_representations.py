"""What a prompt shows of environments, streams, expressions, plans and reports: short, with names and columns."""

from millstream import BlackholeSink, StreamEnvironment, TumblingWindow, col
from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot
from millstream.observe.report import Report

ROWS = [{"id": 1, "user": "ann"}]


def test_an_environment_names_its_nodes_by_kind() -> None:
    env = StreamEnvironment("p")
    assert repr(env) == "StreamEnvironment('p', no nodes yet)"
    env.from_rows(ROWS).filter("id > 1").to(BlackholeSink(), "out")
    assert repr(env) == "StreamEnvironment('p', sources: rows; transforms: filter; sinks: out)"


def test_a_stream_shows_its_path_and_its_columns() -> None:
    stream = StreamEnvironment("p").from_rows(ROWS).filter("id > 1")
    assert repr(stream) == "DataStream(rows → filter: id int64, user string)"
    assert repr(stream.map_batches(lambda batch: batch)) == "DataStream(rows → filter → python: columns not known yet)"


def test_keyed_and_windowed_streams_flows_and_branches_show_what_they_are() -> None:
    rows = StreamEnvironment("p").from_rows(ROWS)
    assert repr(rows.key_by("user")) == "KeyedStream(rows by user)"
    assert repr(rows.key_by("user").window(TumblingWindow.of("5m"))).startswith("WindowedStream(KeyedStream(rows by user), ")
    assert repr(rows.split(ann="user = 'ann'")) == "Split(ann, default)"
    assert (
        repr(rows.to(BlackholeSink())) == "Flow(Topology('p': rows, route(rows), route.ann(route), route.default(route), blackhole(rows)))"
    )


def test_an_expression_shows_its_sql() -> None:
    assert repr(col("amount") > 3) == "Expr(amount > 3)"


def test_a_report_is_one_line() -> None:
    snapshot = Snapshot("p", "done", 2.0, {"out": NodeFacts("sink", rows_in=3)}, {"rows": QueryFacts(epochs=1)})
    assert repr(Report(snapshot, "ck")) == "Report(p done in 2.0 s, epochs: 1, rows written: 3)"
