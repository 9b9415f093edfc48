"""Programs of the Python front door, run on a session that the caller has."""

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
import pytest

from millstream import BlackholeSink, GeneratorSource, MemorySink, MillstreamError, RunOptions, Settings, StreamEnvironment, col, func
from millstream.observe.facts import NodeFacts

pytestmark = pytest.mark.spark
ROWS = [{"id": 1, "user": "ann", "amount": 5.0}, {"id": 2, "user": "bob", "amount": 50.0}, {"id": 3, "user": None, "amount": 500.0}]


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array([value * 2 for value in batch["id"].to_pylist()], pa.int64())})


def thrice(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for _ in range(3):
        yield batch


@pytest.fixture
def env(spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> StreamEnvironment:
    monkeypatch.chdir(tmp_path)
    return StreamEnvironment("p", settings=Settings(checkpoint="ck"), spark=spark)


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_collect_brings_the_rows_back(env: StreamEnvironment) -> None:
    table = env.from_rows(ROWS).filter(col("amount") > 10).with_columns(user=func.upper(col("user"))).drop("amount").collect()
    assert sorted(table.to_pylist(), key=lambda row: row["id"]) == [{"id": 2, "user": "BOB"}, {"id": 3, "user": None}]


def test_collect_can_be_asked_twice_and_leaves_nothing_behind(env: StreamEnvironment) -> None:
    stream = env.from_rows(ROWS)
    assert ids(stream.collect()) == ids(stream.collect()) == [1, 2, 3]
    assert [node.name for node in env.topology().nodes] == ["rows"]


def test_batches_are_mapped_and_multiplied(env: StreamEnvironment) -> None:
    assert ids(env.from_rows(ROWS).map_batches(doubled).flat_map(thrice).collect()) == [2, 2, 2, 4, 4, 4, 6, 6, 6]


def test_an_arrow_table_and_a_lambda_will_do(env: StreamEnvironment) -> None:
    table = pa.table({"id": [1, 2]})
    assert ids(env.from_rows(table).map_batches(lambda batch: batch.slice(0, 1), schema={"id": "int64"}).collect()) == [1]


def test_a_split_loses_and_doubles_no_row_not_even_with_nulls(env: StreamEnvironment) -> None:
    routes = env.from_rows(ROWS, name="o").split(ann=col("user") == "ann", big=col("amount") > 100)
    sinks = {name: MemorySink() for name in routes}
    flow = [stream.to(sinks[name], name) for name, stream in routes.items()][-1]
    report = flow.execute()
    assert {name: [row["id"] for row in sink.rows()] for name, sink in sinks.items()} == {"ann": [1], "big": [3], "default": [2]}
    assert (report.rows_read, report.rows_written, report.epochs) == (3, 3, 1)


def test_tee_and_union_meet_again(env: StreamEnvironment) -> None:
    first, second = MemorySink(), BlackholeSink()
    stream = env.from_rows(ROWS)
    both = stream.filter("id = 1").union(stream.filter("id = 3"))
    report = both.tee(lambda branch: branch.to(first), lambda branch: branch.to(second)).execute()
    assert sorted(row["id"] for row in first.rows()) == [1, 3]
    assert report.nodes["blackhole"].rows_in == 2


def test_sql_names_streams_by_their_nodes(env: StreamEnvironment) -> None:
    orders = env.from_rows(ROWS, name="shop.orders")
    assert ids(orders.sql("SELECT id FROM shop.orders WHERE user IS NULL").collect()) == [3]


def test_a_mistake_that_leads_to_no_sink_does_no_harm(env: StreamEnvironment) -> None:
    rows, sink = env.from_rows(ROWS), MemorySink()
    with pytest.raises(MillstreamError, match="MS024"):
        rows.filter("amuont > 1").collect()
    report = rows.filter("amount > 10").to(sink).execute()
    assert len(sink.rows()) == 2
    assert str(report).startswith("p done in ")


def test_an_interrupt_lets_the_epoch_finish_and_is_no_error(env: StreamEnvironment) -> None:
    sink, rows = MemorySink(), GeneratorSource(fields={"id": {"type": "sequence"}}, rows_per_second=50)
    interrupted = []

    def watch(snapshot: Any) -> None:
        if snapshot.nodes.get("memory", NodeFacts()).rows_in and not interrupted:
            interrupted.append(True)
            signal.raise_signal(signal.SIGINT)

    options = RunOptions(watch=watch)
    report = env.from_source(rows).to(sink).execute(options)
    assert report.state == "stopped"
    assert len(sink.rows()) == report.nodes["memory"].rows_in
    assert not options.stop.is_set()  # the next run with these options is not stopped


def test_half_a_collection_is_not_taken_for_a_whole_one(env: StreamEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(stop: threading.Event) -> AbstractContextManager[None]:
        stop.set()
        return nullcontext()

    monkeypatch.setattr("millstream.api.environment.interruptible", stopped)
    with pytest.raises(KeyboardInterrupt):
        env.from_source(GeneratorSource(fields={"id": {"type": "sequence"}}, rows_per_second=50, rows=100_000)).collect()
