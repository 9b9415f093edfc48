"""The key of a changelog stays with its columns; what merges rows of different keys, or leaves old rows behind, is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.servers.postgres import Database

from millstream.connectors.memory.sink import MemorySink
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology
from millstream.sql.analysed.changelogs import key_in_result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CHANGES = """
    {more}
    sources: {{t: {{type: memory, rows: [{{k: a, l: [1, 2]}}, {{k: A, l: [3]}}, {{k: a, l: [1]}}], rows_per_epoch: 1}}}}
    transforms:
      totals: {{type: sql, sql: "SELECT k, count(*) AS n, max(l) AS l FROM t GROUP BY k"}}
      q: {{type: sql, sql: "{query}"}}
    sinks: {{out: {sink}}}
"""


@pytest.fixture(autouse=True)
def view(spark: SparkSession) -> Iterator[None]:
    spark.createDataFrame([], "k string, m string, n int, l array<int>").createOrReplaceTempView("_millstream_t")
    yield
    spark.catalog.dropTempView("_millstream_t")


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT * FROM _millstream_t WHERE n > 1", ("k", "m")),
        ("SELECT m AS second, k, k AS also FROM _millstream_t", ("k", "second")),
        ("WITH a AS (SELECT k AS x, m FROM _millstream_t) SELECT m, x AS k FROM a", ("k", "m")),
        ("SELECT upper(k) AS k, m FROM _millstream_t", ()),
        ("SELECT m AS k, k AS m FROM _millstream_t", ("m", "k")),
        ("SELECT k, n FROM _millstream_t", ()),
        ("SELECT k, m, explode(l) AS x FROM _millstream_t", ()),
        ("SELECT t.k, t.m, x.b FROM _millstream_t t JOIN VALUES (1) AS x(b) ON t.n = x.b", ()),
    ],
)
def test_a_key_is_followed_by_its_columns(spark: SparkSession, sql: str, key: tuple[str, ...]) -> None:
    assert key_in_result(spark.sql(sql), ("k", "m")) == key


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("SELECT k, explode(l) AS x FROM totals", {("a", 1), ("a", 2), ("A", 3)}),
        ("SELECT k, x FROM totals LATERAL VIEW explode(l) AS x", {("a", 1), ("a", 2), ("A", 3)}),
        ("SELECT totals.k, n FROM totals JOIN VALUES (1) AS x(b) ON n = x.b", {("A", 1)}),
    ],
)
def test_a_step_that_makes_several_rows_of_one_is_kept_up_to_date(
    query: str, table: set[tuple[object, ...]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(CHANGES.format(query=query, sink="{type: memory, from: q}", more=""))
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    left: set[tuple[object, ...]] = set()
    for row in sink.rows():
        op, values = row.pop("_op"), tuple(row.values())
        left = left - {values} if op == "d" else left | {values}
    assert left == table


def test_a_key_that_is_computed_anew_is_no_key(pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database) -> None:
    def load(query: str) -> Topology:
        sink = f"{{type: postgres, from: q, schema: {schema}, table: sums}}"
        return pipeline(CHANGES.format(query=query, sink=sink, more=f"connections: {{postgres: {postgres.connection}}}"))

    schema = postgres.schema()
    with pytest.raises(RunError, match="MS118"):
        run(load("SELECT upper(k) AS k, n FROM totals"))
    run(load("SELECT k AS name, n FROM totals"))
    assert sorted(postgres.rows(f"SELECT name, n FROM {schema}.sums")) == [("A", 1), ("a", 2)]
