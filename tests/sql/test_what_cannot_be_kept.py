"""What an incremental query refuses (MS030) is found without Spark, where a run would really refuse it."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

from millstream.spec.loader import loads

JOIN = "FROM t JOIN u ON t.id = u.id"
CHAIN = """
sources:
  t: {type: memory, schema: {id: int64, g: string}}
  u: {type: memory, schema: {id: int64, g: string}}
transforms:
  q: {type: sql, sql: "FIRST"}
  r: {type: sql, sql: "SECOND"}
sinks: {out: {type: memory, from: r}}
"""

ACCEPTED_NAMES = [
    f"SELECT t.id, t.g, u.g AS G {JOIN}",
    "SELECT id, g AS id FROM t",
    "SELECT g, count(*) AS g FROM t GROUP BY g",
    "SELECT * FROM t NATURAL JOIN u",
    "SELECT * FROM t LEFT SEMI JOIN u ON t.id = u.id",
    "SELECT id, v, w FROM t JOIN u USING (id, g)",
    f"SELECT t.*, u.w {JOIN}",
    f"SELECT * EXCEPT (u.id, u.g) {JOIN}",
    "SELECT sum(n) AS s FROM (SELECT t.g, u.g, count(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY t.g, u.g)",
    "SELECT *, 1 AS g FROM u PIVOT (max(w) FOR g IN ('a', 'b'))",
    "SELECT DISTINCT *, 5 AS w FROM u UNPIVOT (val FOR name IN (w))",
    "SELECT * FROM u AS z(i, k, x) JOIN u ON z.i = u.id",
    "SELECT z.*, u.id FROM u AS z(i, k, x) JOIN u ON z.i = u.id",
]

ACCEPTED = [
    "SELECT id, rand() AS r, uuid() AS u, now() AS n, current_timestamp AS c FROM t",
    "SELECT g, count(*) AS n, now() AS x FROM t GROUP BY g",
    "SELECT DISTINCT id FROM (SELECT id, rand() AS r FROM t)",
    "SELECT DISTINCT id FROM t WHERE TRUE OR rand() > 3",
    "WITH c AS (SELECT id, now() AS r FROM t) SELECT DISTINCT id FROM t",
    "SELECT DISTINCT id, unix_timestamp(at) AS s, 'now()' AS now FROM t",
    f"SELECT t.id, u.g AS current_date {JOIN}",
    "SELECT t.id FROM t JOIN (SELECT id, id AS current_date FROM u) z ON t.id = z.id WHERE current_date > 0",
    "SELECT DISTINCT id FROM t WHERE 1 = 1 OR rand() < 3",
    "SELECT DISTINCT id, if(1 = 1, 2, rand()) AS x FROM t",
    "SELECT DISTINCT id, coalesce(1, rand()) AS x FROM t",
    "SELECT DISTINCT id, nvl2(1, 2, rand()) AS x, nvl(1, uuid()) AS y FROM t",
    "SELECT DISTINCT id, CASE WHEN 1 = 1 THEN 2 ELSE rand() END AS x FROM t",
    "SELECT id FROM t UNION SELECT id FROM u WHERE 1 = 2 AND rand() > 1",
    "SELECT DISTINCT id, rand() AS x FROM t WHERE 1 = 2",
    "SELECT DISTINCT id, rand() AS x FROM t LIMIT 0",
    "SELECT DISTINCT id, rand() AS x FROM t WHERE upper('a') = 'b'",
    "SELECT DISTINCT id, rand() AS x FROM t WHERE startswith('a', 'b')",
    "SELECT DISTINCT id, typeof(rand()) AS x FROM t",
    "SELECT DISTINCT id, rand() + NULL AS x FROM t",
]


def chained(first: str, second: str) -> list[tuple[str, str]]:
    found = loads(CHAIN.replace("FIRST", first).replace("SECOND", second)).diagnostics
    return [(finding.code, finding.node) for finding in found if finding.level == "error"]


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("SELECT DISTINCT id, rand() AS r FROM t", "rand", "`rand()` has another value each time"),
        ("SELECT DISTINCT id FROM t WHERE rand() < 0.5", "rand", "`rand()` has another value each time"),
        ("SELECT id FROM t ORDER BY rand() LIMIT 2", "rand", "`rand()` has another value each time"),
        (f"SELECT t.id, uuid() AS x {JOIN}", "uuid", "`uuid()` has another value each time"),
        (f"SELECT t.id, shuffle(array(1, 2)) AS x {JOIN}", "shuffle", "`shuffle(…)` has another value each time"),
        (f"SELECT t.id, uniform(1, 10) AS x {JOIN}", "uniform", "`uniform(…)` has another value each time"),
        (f"SELECT t.id, randstr(5) AS x {JOIN}", "randstr", "`randstr(…)` has another value each time"),
        ("SELECT DISTINCT id, floor(rand() * 10) AS x FROM t WHERE v > 3", "rand", "`rand()` has another value each time"),
        (f"SELECT t.id, now() AS x {JOIN}", "now", "`now()` changes with the clock"),
        (f"SELECT t.id, current_timestamp AS x {JOIN}", "current_timestamp", "`current_timestamp` changes with the clock"),
        (f"SELECT t.id, current_date() AS x {JOIN}", "current_date", "`current_date()` changes with the clock"),
        (f"SELECT t.id, unix_timestamp() AS x {JOIN}", "unix_timestamp", "`unix_timestamp()` changes with the clock"),
        ("SELECT DISTINCT id FROM (SELECT id, now() AS r FROM t)", "now", "`now()` changes with the clock"),
        ("SELECT DISTINCT id FROM t WHERE at > now() - INTERVAL 1 DAY", "now", "`now()` changes with the clock"),
    ],
)
def test_values_that_differ_each_time_are_found(sql: str, place: str, message: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, marked(finding)) == ("MS030", place)
    assert message in finding.message
    assert finding.help == "compute it in a node whose rows this query reads"


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_a_run_accepts_is_not_accused(sql: str) -> None:
    assert check(sql) == []


def test_a_random_value_that_nobody_reads_is_none() -> None:
    join = "FROM t JOIN u ON t.id = u.id"
    assert chained(f"SELECT t.id, uuid() AS x {join}", "SELECT count(*) AS n FROM q") == []
    assert chained(f"SELECT t.id, now() AS x {join}", "SELECT count(*) AS n FROM q") == [("MS030", "q")]


@pytest.mark.parametrize(
    ("sql", "place", "name"),
    [
        (f"SELECT t.id, t.g, u.g {JOIN}", "u.g", "g"),
        (f"SELECT t.id, u.w AS id {JOIN}", "id", "id"),
        (f"SELECT * {JOIN}", "*", "id"),
        (f"SELECT t.*, u.w AS v {JOIN}", "v", "v"),
        ("SELECT id, g AS id FROM t UNION SELECT id, g FROM u", "id", "id"),
    ],
)
def test_two_columns_of_one_name_are_found(sql: str, place: str, name: str) -> None:
    (finding,) = check(sql)
    assert (finding.code, marked(finding)) == ("MS030", place)
    assert finding.message == f"transform `q`: two columns of the result are called `{name}`"


@pytest.mark.parametrize("sql", ACCEPTED_NAMES)
def test_names_that_a_run_accepts_are_not_accused(sql: str) -> None:
    assert check(sql) == []


def test_names_within_a_chain_do_not_matter() -> None:
    join = "FROM t JOIN u ON t.id = u.id"
    assert chained(f"SELECT t.id, t.g, u.g {join}", "SELECT count(*) AS n FROM q") == []
    assert chained(f"SELECT t.id, t.g, u.g {join}", "SELECT id FROM q") == [("MS030", "q")]
