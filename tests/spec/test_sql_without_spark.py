"""What Spark would refuse in a query is found without Spark; what Spark accepts is not accused."""

from __future__ import annotations

import pytest

from millstream.errors import Diagnostic
from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders:
    type: memory
    schema: {id: int64, user: string, amount: int64, at: timestamp, tags: "list<struct<name: string, n: int64>>", box: "struct<a: int64>"}
    event_time: {column: at, watermark: 1m}
transforms:
  t:
    type: sql
    sql: |
      SQL
sinks: {out: {type: file, from: t, path: out, format: json, partition_by: [PARTITION]}}
"""


def found(sql: str, partition: str = "id") -> tuple[Diagnostic, ...]:
    return loads(PIPELINE.replace("SQL", sql).replace("PARTITION", partition)).diagnostics


def marked(finding: Diagnostic) -> str:
    assert finding.span
    return finding.span.text[finding.span.column - 1 : finding.span.end - 1]


@pytest.mark.parametrize(
    ("sql", "code", "place", "help_"),
    [
        ("SELECT id, lenght(user) AS n FROM orders", "MS159", "lenght", "did you mean `length`?"),
        ("SELECT id, frobnicate(user) AS n FROM orders", "MS159", "frobnicate", "declared under `functions:`"),
        ("SELECT id, user, count(*) AS n FROM orders GROUP BY id", "MS160", "user", "add it to GROUP BY"),
        ("SELECT id, upper(user) AS u, count(*) AS n FROM orders GROUP BY id", "MS160", "user", "add it to GROUP BY"),
        ("SELECT id, count(*) AS n FROM orders", "MS160", "id", "add it to GROUP BY"),
        ("SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t(tag)", "MS162", "UNNEST", "`LATERAL VIEW explode(tags) t AS tag`"),
        ("SELECT idd AS id FROM orders LATERAL VIEW explode(tags) t AS tag", "MS024", "idd", "did you mean `id`?"),
        ("SELECT id, tag.nme FROM orders LATERAL VIEW explode(tags) t AS tag", "MS024", "nme", "did you mean `name`?"),
        ("SELECT id, t.tga FROM orders LATERAL VIEW explode(tags) t AS tag", "MS024", "tga", "did you mean `tag`?"),
        ("SELECT id, box.aa FROM orders", "MS024", "aa", "did you mean `a`?"),
        ("SELECT id, user.name FROM orders", "MS024", "name", ""),
        ("SELECT id FROM orders WHERE sum(amount) > 3", "MS160", "sum", "`HAVING sum(amount) > 3`"),
        ("WITH a AS (SELECT id, user FROM orders) SELECT id, usr FROM a", "MS024", "usr", "did you mean `user`?"),
    ],
)
def test_what_spark_refuses_is_found(sql: str, code: str, place: str, help_: str) -> None:
    (finding,) = found(sql)
    assert (finding.code, marked(finding)) == (code, place)
    assert help_ in finding.help


def test_columns_below_a_lateral_view_are_known() -> None:
    sql = "SELECT id, tag.name AS name FROM orders LATERAL VIEW explode(tags) t AS tag"
    assert not found(sql, "name")
    (finding,) = found(sql, "nme")
    assert "`nme`" in finding.message


def test_a_column_of_both_sides_is_ambiguous() -> None:
    sql = """
        WITH a AS (SELECT window, id, count(*) AS n FROM orders GROUP BY window(at, '1 hour'), id),
             b AS (SELECT window, id, sum(amount) AS s FROM orders GROUP BY window(at, '1 hour'), id)
        SELECT {id}, n, s FROM a JOIN b ON a.window = b.window AND a.id = b.id
    """
    (finding,) = found(sql.format(id="id").replace("\n", " "))
    assert (finding.code, finding.help) == ("MS161", "write `a.id` or `b.id`")
    assert not found(sql.format(id="a.id").replace("\n", " "))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, timestampdiff(HOUR, at, now()) AS h, extract(year FROM at) AS y, try_cast(user AS int) AS i FROM orders",
        "SELECT id, date_add(DAY, 1, at) AS d, dateadd(HOUR, 2, at) AS e, position('a' IN user) AS p FROM orders",
        "SELECT id, substring(user FROM 1 FOR 2) AS s, trim(BOTH 'x' FROM user) AS t, int(user) AS i, string(id) AS u FROM orders",
        "SELECT id, transform(tags, x -> x.name) AS names, aggregate(tags, 0L, (s, x) -> s + x.n) AS n FROM orders",
        "SELECT id, CAST(amount AS DECIMAL(18, 2)) AS d, struct(id, user).id AS i, named_struct('a', 1).a AS a FROM orders",
        "SELECT id, user AS u, count(*) AS n FROM orders GROUP BY id, u",
        "SELECT id, amount + 1 AS a, count(*) AS n FROM orders GROUP BY id, amount + 1",
        "SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS p, sum(id) FILTER (WHERE id > 1) AS f FROM orders GROUP BY id",
        "SELECT id, max_by(user, at) AS u, any_value(amount) AS a, some(amount > 1) AS s, std(amount) AS d FROM orders GROUP BY id",
        "SELECT id, box, box.a AS a, count(*) AS n FROM orders GROUP BY id, box",
        "SELECT window.start AS s, window.end AS e, id, count(*) AS n FROM orders GROUP BY window(at, '1 hour'), id",
        "SELECT o.id, o.box.a AS a, inside.n FROM orders o LATERAL VIEW OUTER explode(tags) t AS inside",
        "SELECT id, pos, tag FROM orders LATERAL VIEW posexplode(tags) t AS pos, tag LATERAL VIEW explode(array(1, 2)) u AS twice",
        "SELECT id, col FROM (SELECT id, explode(tags) AS col FROM orders)",
        "SELECT id, user FROM orders UNION ALL SELECT amount, user FROM orders",
    ],
)
def test_what_spark_accepts_is_not_accused(sql: str) -> None:
    assert [finding.render() for finding in found(sql) if finding.level == "error"] == []


def test_functions_of_the_pipeline_are_known() -> None:
    text = "functions: {double: 'udfs:double', broken: {function: 5}}\n" + PIPELINE
    text = text.replace("SQL", "SELECT double(id) AS id, broken(id) AS b, dynamic_table_get('x', id) AS v FROM orders").replace(
        "PARTITION", "id"
    )
    assert "MS159" not in [finding.code for finding in loads(text).diagnostics]


def test_functions_in_expressions_are_checked_too() -> None:
    text = """
sources: {orders: {type: memory, rows: [{id: 1, user: a}]}}
transforms:
  f: {type: filter, from: orders, where: lenght(user) > 1}
  w: {type: with_columns, from: f, columns: {n: uper(user)}}
sinks: {out: {type: print, from: w}}
"""
    assert [(finding.code, marked(finding), finding.help) for finding in loads(text).diagnostics] == [
        ("MS159", "lenght", "did you mean `length`?"),
        ("MS159", "uper", "did you mean `upper`?"),
    ]
