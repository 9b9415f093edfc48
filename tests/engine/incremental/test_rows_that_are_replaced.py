"""Below a result that is kept up to date, every row that was passed on is taken back when it goes: an update has no old row with it, and a
reader either does not need that row, or the changes are whole rows, or it is refused.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import Database

from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.memory.sink import MemorySink
from millstream.engine.lowering.nodes import Lowering
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
ROWS = "rows: [{k: a, v: 1}, {k: b, v: 5}, {k: a, v: 6}, {k: c, v: 2}, {k: b, v: 1}, {k: a, v: -3}], rows_per_epoch: 1"
WHOLE = "SELECT n FROM (SELECT k, count(*) AS c, sum(v) AS n FROM t GROUP BY k) WHERE c > 0"
"""No column identifies a row: 1; 1, 5; 7, 5; 7, 5, 2; 7, 6, 2; 4, 6, 2."""
KEYED = "SELECT k, sum(v) AS n FROM t GROUP BY k HAVING sum(v) > 0"
BELOW = {
    "filter": ("{type: filter, from: q, where: n < 6}", "below"),
    "sql": ('{type: sql, sql: "SELECT n FROM q WHERE n < 6"}', "below"),
    "route": ("{type: route, from: q, routes: {small: n < 6}}", "below.small"),
}


def text(sql: str, below: str, read: str) -> str:
    return f"""
        sources: {{t: {{type: memory, {ROWS}}}}}
        transforms: {{q: {{type: sql, sql: "{sql}"}}, below: {below}}}
        sinks: {{out: {{type: memory, from: {read}}}}}
    """


def changes(topology: Topology) -> list[dict[str, Any]]:
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    return list(sink.rows())


def whole(topology: Topology) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in changes(topology):
        found[row["n"]] += {"i": 1, "d": -1}[row["_op"]]
        assert found[row["n"]] >= 0, f"{row} was not there"
    return +found


@pytest.mark.parametrize("name", BELOW)
def test_conditions_take_back_whole_rows_that_they_let_through(
    name: str, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(text(WHOLE, *BELOW[name]))
    run(topology)
    assert whole(topology) == Counter([2, 4])


def test_otherwise_rows_that_were_never_there_would_be_removed(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(Lowering, "_maintained_stream", _forgetting(Lowering._maintained_stream))
    topology = pipeline(text(WHOLE, *BELOW["filter"]))
    run(topology)
    with pytest.raises(AssertionError, match="was not there"):
        whole(topology)


def _forgetting(build: Callable[..., Any]) -> Callable[..., Any]:
    def built(self: Lowering, *given: Any) -> Any:
        try:
            return build(self, *given)
        finally:
            self.whole_rows.clear()

    return built


@pytest.mark.parametrize("value", ["now()", "rand()"])
def test_a_value_that_varies_is_refused_beside_whole_rows(
    value: str, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    with pytest.raises(RunError, match=r"MS030.*`below`: a row may be removed with other values"):
        run(pipeline(text(WHOLE, f'{{type: sql, sql: "SELECT n, {value} AS x FROM q"}}', "below")))


@pytest.mark.parametrize("name", BELOW)
def test_by_key_a_row_that_no_longer_passes_is_deleted(name: str, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    below, read = BELOW[name]
    topology = pipeline(text(KEYED, below.replace("SELECT n", "SELECT k, n"), read))
    run(topology)
    table: dict[str, int] = {}
    for row in changes(topology):
        table.pop(row["k"], None)
        table |= {row["k"]: row["n"]} if row["_op"] != "d" else {}
    assert table == {"a": 4, "c": 2}


def test_totals_in_postgres_keep_the_old_rows_themselves(
    pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database
) -> None:
    schema = postgres.schema()
    run(pipeline(_aggregate(postgres, schema, f"{{type: memory, {ROWS}}}")))
    assert postgres.rows(f"SELECT total, n FROM {schema}.agg") == [(12, 3)]


def test_every_row_for_itself_cannot_be_updated(
    pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database, tmp_path: Path
) -> None:
    Path("in").mkdir()
    files = "{type: file, path: in, format: json, schema: {k: string, v: int64}}"
    with pytest.raises(RunError, match=r"MS178.*have the key `k`.*remove `deduplicate: false`".replace(".*", "(?s:.*)")):
        run(pipeline(_aggregate(postgres, postgres.schema(), files, ", deduplicate: false")))


def _aggregate(postgres: Database, schema: str, source: str, more: str = "") -> str:
    totals = "aggregate: {total: {fn: sum, from: n, type: bigint}, n: {fn: count}}"
    return f"""
        settings: {{trigger: {{type: available_now}}}}
        connections: {{postgres: {postgres.connection}}}
        sources: {{t: {source}}}
        transforms: {{q: {{type: sql, sql: "{KEYED}"}}}}
        sinks: {{out: {{type: postgres_aggregate, from: q, schema: {schema}, landing_table: l, agg_table: agg, {totals}{more}}}}}
    """


@pytest.mark.parametrize(("sql", "refused"), [(KEYED, False), (KEYED.replace("sum(v) AS n", "v AS n").replace("BY k", "BY k, v"), True)])
def test_a_dynamic_table_is_filled_by_the_key_of_the_changes(
    sql: str, refused: bool, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(f"""
        sources: {{t: {{type: memory, {ROWS}}}, u: {{type: memory, rows: [{{k: a}}, {{k: b}}]}}}}
        transforms:
          q: {{type: sql, sql: "{sql}"}}
          kept: {{type: dynamic_table, backend: sqlite, path: t.db, sql: "SELECT k, n FROM q", key: k, columns: {{n: int64}}}}
        sinks: {{out: {{type: blackhole, from: u}}}}
    """)
    if not refused:
        run(topology)
        with closing(sqlite3.connect("t.db")) as table:
            assert set(table.execute("SELECT k, n FROM kept")) == {("a", 4), ("b", 6), ("c", 2)}
        return
    with pytest.raises(RunError, match=r"MS178.*table `kept` has the key `k`"):
        run(topology)


def test_kafka_removes_by_the_key_of_its_messages() -> None:
    sink = KafkaSink(bootstrap_servers="localhost:1", topic="t", key=("user",))
    assert sink.takes_updates(("user",)) and not sink.takes_updates(("user", "day")) and not sink.takes_updates(())
    assert sink.model_copy(update={"deletes": "row"}).takes_updates(())
