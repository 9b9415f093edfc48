"""The rows of small epochs come with the merge, those of others from staging tables: both ways leave the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.postgres import Database

from millstream.connectors.postgres.write import given_rows
from millstream.connectors.postgres.write.delivery import PostgresDeliveryRun
from millstream.connectors.postgres.write.given_rows import GivenRows, SmallWay
from millstream.observe.report import Report
from millstream.plan.components import Epoch
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

VALUES = {
    "tiny": "CAST(id AS TINYINT)",
    "whole": "IF(id = 1, NULL, 9223372036854775807L - id)",
    "money": "CAST(-0.000001 * id AS DECIMAL(38, 14))",
    "single": "CAST(0.1 AS FLOAT) * id",
    "double": "CASE id WHEN 0 THEN double('NaN') WHEN 1 THEN double('-Infinity') WHEN 2 THEN -0.0D WHEN 3 THEN 5e-324D ELSE 0.1D * id END",
    "note": r"CASE id WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN 'NULL' WHEN 3 THEN '{a,\"b\\\\c\",%s $1}' ELSE 'ü\U0001f600\n\t' END",
    "data": "IF(id = 1, NULL, X'00FF5C22')",
    "flag": "id % 2 = 0",
    "day": "DATE '0001-01-01' + CAST(id AS INT)",
    "at": "TIMESTAMP '9999-12-31 23:59:59.999999Z' - make_interval(id)",
    "local": "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'",
    "span": "INTERVAL '1 02:03:04.000005' DAY TO SECOND * (1 - id)",
    "doc": "named_struct('x', id, 'y', CAST(NULL AS STRING))",
    "numbers": "array(id, NULL)",
    "texts": r"IF(id = 1, NULL, array('a,\"b\"', NULL, '\\\\', ''))",
    "times": "array(TIMESTAMP '2026-01-02 03:04:05.678901Z')",
    "bytes": "IF(id = 2, array(), array(X'00', CAST(NULL AS BINARY)))",
}
CHANGES = [
    {"id": 1, "v": 5, "_op": "i", "_seq": 1},
    {"id": 2, "v": 6, "_op": "i", "_seq": 2},
    {"id": 1, "v": 4, "_op": "u", "_seq": 3},
    {"id": 3, "v": 7, "_op": "i", "_seq": 4},
    {"id": 2, "v": 6, "_op": "d", "_seq": 5},
    {"id": 9, "v": 1, "_op": "d", "_seq": 6},
]
PLAIN = [{"id": n % 4, "v": n} for n in range(10)]
TABLE = "type: postgres, table: t"
TOTALS = "aggregate: {n: {fn: count}, s: {fn: sum, from: v}, hi: {fn: max, from: v}, a: {fn: avg, from: v}}"
MODES = {
    "append": (PLAIN, f"{TABLE}, mode: append"),
    "upsert": (PLAIN, f"{TABLE}, primary_key: id"),
    "replace": (PLAIN, f"{TABLE}, mode: replace"),
    "deletes": (CHANGES, f"{TABLE}, primary_key: id"),
    "soft deletes": (CHANGES, f"{TABLE}, primary_key: id, soft_delete: gone, types: {{v: numeric}}"),
    "guarded": (PLAIN, f"{TABLE}, primary_key: id, update_where: {{v: '<'}}"),
    "kept": (PLAIN, f"{TABLE}, primary_key: id, on_conflict: nothing"),
    "added": (PLAIN, f"{TABLE}, primary_key: id, evolve: add_columns"),
    "aggregate": (CHANGES, f"type: postgres_aggregate, primary_key: id, landing_table: l, agg_table: t, {TOTALS}"),
}
TEXT = """
    name: {schema}
    connections: {{postgres: {connection}}}
    sources: {{m: {{type: memory, rows: {rows}, rows_per_epoch: 3}}}}
    transforms: {{typed: {{type: sql, sql: "{sql}"}}}}
    sinks: {{pg: {{from: typed, schema: {schema}, {options}}}}}
"""


class Ways:
    """Runs one pipeline in both ways."""

    def __init__(
        self, postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], patch: pytest.MonkeyPatch
    ) -> None:
        self._postgres, self._pipeline, self._run, self._patch = postgres, pipeline, run, patch
        self.given = 0
        make = given_rows._given

        def counting(*arguments: Any) -> GivenRows | None:
            found = make(*arguments)
            self.given += found is not None
            return found

        patch.setattr(given_rows, "_given", counting)

    def tables(self, rows: Any, options: str, sql: str = "SELECT * FROM m", before: str = "") -> tuple[list[Any], list[Any]]:
        """The table after the small way, and after the other one."""
        small = self._table(rows, options, sql, before)
        self._patch.setattr(SmallWay, "is_open", lambda _: False)
        given, large = self.given, self._table(rows, options, sql, before)
        assert self.given == given
        return small, large

    def _table(self, rows: Any, options: str, sql: str, before: str) -> list[Any]:
        schema = self._postgres.schema()
        if before:
            self._postgres.run(before.format(schema=schema))
        text = TEXT.format(schema=schema, connection=self._postgres.connection, rows=rows, sql=sql.replace('"', '\\"'), options=options)
        self._run(self._pipeline(text, schema))
        columns = ", ".join(
            f't."{name}"::text' if name != "gone" else "gone IS NULL"
            for (name,) in self._postgres.rows(
                f"SELECT attname FROM pg_attribute WHERE attrelid = '{schema}.t'::regclass AND attnum > 0 ORDER BY attnum"
            )
        )
        return sorted(self._postgres.rows(f"SELECT {columns} FROM {schema}.t AS t"), key=str)


@pytest.fixture
def ways(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(postgres, pipeline, run, monkeypatch)


def test_every_type_has_the_same_values(ways: Ways) -> None:
    sql = "SELECT id, " + ", ".join(f"{text} AS {name}" for name, text in VALUES.items()) + " FROM m"
    small, large = ways.tables([{"id": n} for n in range(5)], f"{TABLE}, primary_key: id, arrays: native", sql.replace("\\", "\\\\"))
    assert small == large
    assert (len(small), ways.given) == (5, 2)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_the_same_rows(ways: Ways, mode: str) -> None:
    rows, options = MODES[mode]
    before = "CREATE TABLE {schema}.t (id bigint PRIMARY KEY)" if mode == "added" else ""
    small, large = ways.tables(rows, options, before=before)
    assert small == large
    assert small and ways.given > 1


@pytest.mark.parametrize("value", ["DATE '0001-01-01' - 1", "TIMESTAMP '+10000-01-01 00:00:00Z'"])
def test_what_has_no_text_is_staged_in_a_table(ways: Ways, value: str) -> None:
    small, large = ways.tables([{"id": 1}], TABLE, f"SELECT id, {value} AS v FROM m")
    assert small == large
    assert (len(small), ways.given) == (1, 0)


def test_an_epoch_with_many_rows_is_staged_in_tables_and_counted_once(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.sql.catalyst.small_rows._ROWS", 2)
    monkeypatch.setattr("millstream.sql.catalyst.small_rows._LEAST_ROWS", 2)
    reports: list[Report] = []
    run = ways._run
    ways._run = lambda *arguments: reports.append(run(*arguments)) or reports[-1]  # type: ignore[func-returns-value]
    small, large = ways.tables([{"id": n} for n in range(3)], TABLE)
    assert small == large
    assert ways.given == 0
    assert [report.nodes["m"].rows_out for report in reports] == [3, 3]


def test_queries_that_share_a_sink_learn_each_for_itself() -> None:
    run = PostgresDeliveryRun(None, None)  # type: ignore[arg-type]  # neither is used
    first, second = (run.small_way(Epoch(query, "pg", 0, "d", "")) for query in ("q1", "q2"))
    assert first is not second
    assert run.small_way(Epoch("q1", "pg", 1, "d", "")) is first
