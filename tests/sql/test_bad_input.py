"""Names, values and changes that are easy to get wrong: a pipeline gives the right answer, or one error that says what and where."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
Row = dict[str, Any]
Start = Callable[..., Report]
KV = {"k": "string", "v": "int64"}
ROWS: list[list[Row]] = [[{"k": "a", "v": 1}, {"k": "b", "v": 2}], [{"k": "a", "v": 3}]]

PIPELINE = """
name: p
settings: {trigger: {type: available_now}, checkpoint: ck}
sources:
  t: {type: file, path: in, format: json, max_files_per_epoch: 1, schema: SCHEMA}
transforms:
  q:
    type: sql
    sql: |
SQL
sinks:
  out: {type: file, from: q, path: out, format: json}
"""
FIRST = 10
"""The line of the file in which the query begins; its column is 7."""


@pytest.fixture
def start(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Start:
    """Run a query over a table `t` of files, one epoch per file; a second call continues with further files."""

    def go(sql: str, schema: dict[str, str], epochs: list[list[Row]]) -> Report:
        folder = Path("in")
        folder.mkdir(exist_ok=True)
        for rows in epochs:
            number = len(list(folder.iterdir()))
            (folder / f"{number:03}.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        indented = textwrap.indent(sql, " " * 6)
        return run(pipeline(PIPELINE.replace("SCHEMA", json.dumps(schema, ensure_ascii=False)).replace("SQL", indented)))

    return go


def delivered() -> list[Row]:
    return [json.loads(line) for file in committed_files("out") for line in Path(file).read_text(encoding="utf-8").splitlines()]


def table(*key: str) -> list[Row]:
    """What the changes amount to, by a key; without one a change is a whole row."""
    rows: list[Row] = []
    for row in delivered():
        op = row.pop("_op")
        same = [old for old in rows if all(old.get(name) == row.get(name) for name in key or set(old) | set(row))]
        assert len(same[:1]) == (op != "i") or (not key and op == "i"), f"{op} {row} does not fit {rows}"
        if op != "i" or key:
            rows = [old for old in rows if old is not next(iter(same), None)]
        rows += [row] if op != "d" else []
    return sorted(rows, key=str)


ODD = ["_w", "_h", "_weight", "c0", "_part", "_p0", "_rows", "k0", "x0_0", "op", "place", "_touched"]
WIDE = [f"v{number}" for number in range(300)]
LONG = (
    "SELECT k,\n  CASE\n"
    + "\n".join(f"    WHEN v = {number} THEN {number * 10}" for number in range(1995))
    + "\n  END AS x, count(*) AS n\n"
)
RIGHT: dict[str, tuple[str, dict[str, str], list[list[Row]], tuple[str, ...], list[Row]]] = {
    "a table that joins itself": (
        "SELECT a.k, a.v, b.v AS w FROM t a JOIN t b ON a.k = b.k AND a.v < b.v",
        KV,
        ROWS,
        (),
        [{"k": "a", "v": 1, "w": 3}],
    ),
    "reserved words and unicode": (
        "SELECT `select`, `from it`, sum(`größe`) AS `日本` FROM t GROUP BY ALL HAVING count(*) > 0",
        {"select": "string", "from it": "string", "größe": "int64"},
        [[{"select": "é", "from it": "x", "größe": 1}], [{"select": "é", "from it": "x", "größe": 2}]],
        ("select", "from it"),
        [{"select": "é", "from it": "x", "日本": 3}],
    ),
    "a backtick and a dot": (
        "SELECT `a``b`, max(`c.d`) AS m FROM t GROUP BY 1 HAVING count(*) > 0",
        {"a`b": "string", "c.d": "int64"},
        [[{"a`b": "x", "c.d": 1}], [{"a`b": "x", "c.d": 2}]],
        ("a`b",),
        [{"a`b": "x", "m": 2}],
    ),
    "names that the engine uses": (
        f"SELECT {', '.join(ODD)}, count(*) AS n FROM t JOIN (SELECT DISTINCT _h AS other FROM t) ON _h = other GROUP BY ALL",
        dict.fromkeys(ODD, "int64"),
        [[{name: place for place, name in enumerate(ODD)}]] * 2,
        tuple(ODD),
        [{name: place for place, name in enumerate(ODD)} | {"n": 2}],
    ),
    "a definition named like a node": (
        "WITH t AS (SELECT k, v + 1 AS v FROM t) SELECT k, sum(v) AS s FROM t GROUP BY k HAVING count(*) > 0",
        KV,
        ROWS,
        ("k",),
        [{"k": "a", "s": 6}, {"k": "b", "s": 3}],
    ),
    "floating-point keys": (
        "SELECT CAST(k AS double) AS f, count(*) AS n FROM t GROUP BY 1 HAVING count(*) > 0",
        {"k": "string"},
        [[{"k": "NaN"}, {"k": "0.0"}], [{"k": "-0.0"}, {"k": "nan"}, {"k": "-Infinity"}]],
        ("f",),
        [{"f": "-Infinity", "n": 1}, {"f": "NaN", "n": 2}, {"f": 0.0, "n": 2}],
    ),
    "300 columns": (
        "SELECT * FROM t WHERE k IN (SELECT k FROM t WHERE v299 = 2)",
        {"k": "string", **dict.fromkeys(WIDE, "int64")},
        [[{"k": "a", **dict.fromkeys(WIDE, 1)}], [{"k": "a", **dict.fromkeys(WIDE, 2)}]],
        (),
        [{"k": "a", **dict.fromkeys(WIDE, number)} for number in (1, 2)],
    ),
    "a query of 2,000 lines": (
        LONG + "FROM t\nGROUP BY ALL HAVING count(*) > 0",
        KV,
        ROWS,
        ("k", "x"),
        [{"k": "a", "n": 1, "x": 10}, {"k": "a", "n": 1, "x": 30}, {"k": "b", "n": 1, "x": 20}],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_answer_is_right(name: str, start: Start) -> None:
    sql, schema, epochs, key, expected = RIGHT[name]
    start(sql, schema, epochs)
    assert table(*key) == sorted(expected, key=str)


OPTION = (0, 4)
"""The place of the option `sql` itself, where no place in the query is known."""
REFUSED: dict[str, tuple[str, str, tuple[int, int]]] = {
    "an ambiguous name": ("SELECT a.v,\n  k\nFROM t a JOIN t b ON a.v = b.v", "MS161.*`k` is a column of `a` and `b`", (2, 3)),
    "two columns of one name": (
        "SELECT a.k, b.k\nFROM t a JOIN t b ON a.v = b.v",
        "MS030.*two columns of the result are called `k`",
        (1, 13),
    ),
    "a column called _op": ("SELECT DISTINCT\n  k AS _op\nFROM t", "MS030.*`_op`", OPTION),
    "a map in DISTINCT": ("SELECT DISTINCT map(k, v) AS m FROM t", "MS066.*MAP type", (1, 1)),
    "a map in GROUP BY": (
        "SELECT map(k, v) AS m, count(*) AS n FROM t\nGROUP BY 1 HAVING count(*) > 0",
        "MS030.*a map in GROUP BY",
        (1, 1),
    ),
    "a variant in DISTINCT": ("SELECT DISTINCT parse_json(k) AS j FROM t", "MS066.*VARIANT type", (1, 1)),
    "a variant that is kept": (
        "SELECT parse_json(k) AS j\nFROM t\nWHERE v > (SELECT avg(v) FROM t)",
        "MS030.*`j` has the type `variant`",
        (1, 1),
    ),
    "a collation": ("SELECT DISTINCT k COLLATE UTF8_LCASE AS c FROM t", "MS030.*`c` has the type.*collate", (1, 1)),
    "a mistake in the last line": (f"{LONG}FROM t\nGROUP BY nothing", "MS024.*unknown column `nothing`", (2000, 10)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_and_where(name: str, start: Start) -> None:
    sql, reason, (line, column) = REFUSED[name]
    with pytest.raises(MillstreamError, match=reason) as refused:
        start(sql, KV, ROWS)
    text = str(refused.value)
    assert f"p.yaml:{FIRST + line - 1}:{6 + column}\n" in text
    assert "Traceback" not in text and "\n\tat " not in text
    assert not delivered() and not list(Path("ck").glob("queries/*/offsets/[0-9]*"))


def test_a_sum_that_does_not_fit_stops_before_its_epoch_is_delivered(start: Start) -> None:
    largest = "9" * 38
    sql, schema = "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING count(*) > 0", {"k": "string", "v": "decimal(38,0)"}
    with pytest.raises(MillstreamError, match=r"`q` failed on a row: overflow in sum") as failed:
        start(sql, schema, [[{"k": "a", "v": largest}], [{"k": "a", "v": largest}]])
    assert "Traceback" not in str(failed.value) and "\n\tat " not in str(failed.value)
    assert [row["_op"] for row in delivered()] == ["i"], "the first epoch is there, the second is not"


TOTALS = "SELECT k, max(v) AS m FROM t GROUP BY k HAVING count(*) > 0"


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        (TOTALS.replace("max", "min"), KV),
        (TOTALS, {"k": "string", "v": "int32"}),
        (TOTALS, {"k": "int64", "v": "int64"}),
    ],
    ids=["another query", "a column of another type", "a key of another type"],
)
def test_state_of_before_is_not_used_and_not_lost(sql: str, schema: dict[str, str], start: Start) -> None:
    start(TOTALS, KV, ROWS[:1])
    with pytest.raises(MillstreamError, match=r"MS053.*`q` cannot continue") as refused:
        start(sql, schema, ROWS[1:])
    assert "reset" in str(refused.value) and "Traceback" not in str(refused.value)
    start(TOTALS, KV, [])
    assert table("k") == [{"k": "a", "m": 3}, {"k": "b", "m": 2}]


def test_a_scalar_subquery_with_several_rows_is_an_error_at_the_query(start: Start) -> None:
    sql = "SELECT k, v,\n  (SELECT v FROM t u WHERE u.k = 'a') AS first\nFROM t"
    with pytest.raises(MillstreamError, match=r"MS180.*`q`: a scalar subquery returned more than one row") as failure:
        start(sql, KV, ROWS)
    span = failure.value.diagnostics[0].span
    assert span is not None
    assert (span.line, span.text[span.column - 1 : span.end - 1]) == (FIRST + 1, "(SELECT v FROM t u WHERE u.k = 'a')")
    assert {row["v"] for row in delivered()} in ({1, 2}, {3})  # of the first epoch, whichever file it read
