"""Hints and pipes, which only Spark reads as they are, make no false errors; an unknown table is told as one."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

ACCEPTED = [
    "SELECT /*+ BROADCAST(x) */ t.id, x.w FROM t JOIN u x ON t.id = x.id",
    "SELECT /*+ MERGE(x), COALESCE(1) */ t.id, x.w FROM t JOIN u x ON t.id = x.id",
    "SELECT id + 1 AS x FROM t |> SELECT x",
    "SELECT g, count(*) AS n FROM t GROUP BY g |> SELECT g, n * 2 AS m",
    "SELECT id AS x FROM t |> EXTEND x + 1 AS y",
    "FROM t |> AGGREGATE count(*) AS n GROUP BY g AS thing",
]


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []


@pytest.mark.parametrize("sql", ["SELECT x.id FROM t y", "SELECT y.id FROM t y JOIN u ON y.id = x.id"])
def test_an_unknown_table_is_not_an_unknown_column(sql: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, finding.message, marked(finding)) == ("MS024", "transform `q`: unknown table `x`", "x")
    assert "`y`" in finding.help


def test_one_mistake_has_one_message() -> None:
    (finding,) = check("SELECT * FROM t LEFT JOIN u ON t.id = u.idd")
    assert finding.message == "transform `q`: unknown column `idd`"


def test_a_text_that_cannot_be_read_does_not_make_its_options_wrong() -> None:
    from millstream.spec.loader import loads

    found = loads("""
sources:
  t: {type: memory, schema: {g: string, at: timestamp}, event_time: {column: at, watermark: 1m}}
transforms:
  q: {type: sql, late: drop, sql: "SELECT g, count(*) n FROM t GROUP BY g, window(at, '1 minute') AS w"}
sinks: {out: {type: memory, from: q}}
""").diagnostics
    assert [finding.code for finding in found] == ["MS158"]
