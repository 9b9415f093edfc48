"""SQL over a changelog means what it means over the table: applying what comes out gives the query's result over the final rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.clients.storage import LocalStorage
from millstream.errors import RunError
from millstream.plan.components import NodeContext
from millstream.transforms.sql import Sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
CHANGES: list[tuple[int, int | None, str]] = [
    *[(key, value, "i") for key, value in [(1, 5), (2, 50), (3, 50), (4, None), (5, 50), (6, 7)]],
    *[(1, 50, "u"), (2, 5, "u"), (3, None, "u"), (4, 60, "u"), (5, None, "d"), (6, None, "d"), (7, 50, "i"), (7, 8, "u"), (7, 70, "u")],
]
PLAIN = [(100, 50), (101, 1)]
Query = Callable[[str], tuple[Any, Any]]


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Query:
    """What the changelog of a query makes of an empty table; and the query over the table itself. Its first column is the key."""

    def go(sql: str) -> tuple[Any, Any]:
        rows = [(key, value, op, seq) for seq, (key, value, op) in enumerate(CHANGES)]
        current = {key: (key, value, op) for key, value, op in CHANGES}
        final = [(key, value) for key, value, op in current.values() if op != "d"]
        step, context = Sql(sql=sql), NodeContext("q", tmp_path, LocalStorage(tmp_path / "q"))
        frames = {"t": _rows(spark, rows, "id, v, _op, _seq"), "plain": _rows(spark, PLAIN, "id, v")}
        frames = {name: frame for name, frame in frames.items() if name in step.tables()}
        result = [row.asDict() for row in step.open(context).apply(frames, context).collect()]
        table: dict[Any, Any] = {}
        for row in sorted(result, key=lambda row: row["_seq"] or 0):
            op, values = row.pop("_op"), [value for name, value in row.items() if name != "_seq"]
            table.pop(values[0], None)
            table |= {values[0]: tuple(values)} if op != "d" else {}
        frames |= {"t": _rows(spark, final, "id, v")}
        expected = Sql(sql=sql).open(context).apply(frames, context).collect()
        return sorted(table.values(), key=str), sorted(map(tuple, expected), key=str)

    return go


def _rows(spark: SparkSession, rows: list[Any], names: str) -> DataFrame:
    """Rows that need no process of Python's to read."""
    return spark.sql(f"SELECT * FROM VALUES {', '.join(map(str, rows))} AS rows ({names})".replace("None", "NULL"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, v FROM t WHERE v > 10 -- large ones\n;",
        "SELECT id, v FROM t WHERE v NOT IN (5, NULL) OR v IS NULL",
        "SELECT x.* FROM t x WHERE x.v > 10",
        "SELECT t.*, v + 1 AS w FROM t WHERE v > 10",
        "SELECT id AS k, * FROM t WHERE v > 10",
        "SELECT * EXCEPT (v) FROM t WHERE v > 10",
        "SELECT * EXCEPT (v) FROM t UNION ALL SELECT id FROM plain",
        "SELECT * FROM (t) WHERE v > 10",
        "SELECT id, extract(YEAR FROM DATE '2020-01-01') AS y FROM t WHERE (v > 10 AND v < 60)",
        "SELECT q.id, q.v FROM (SELECT id, v FROM t WHERE v > 5) q WHERE q.v < 60",
        "WITH a AS (SELECT * FROM t WHERE v > 5), b AS (SELECT id, v FROM a WHERE v < 60) SELECT * FROM b",
        "(SELECT id, v FROM t WHERE v > 10) UNION ALL (SELECT id, v FROM plain)",
        "SELECT id, v FROM plain UNION ALL SELECT * FROM t WHERE v > 10",
        "SELECT id FROM (SELECT id, v FROM plain UNION ALL SELECT id, v FROM t) WHERE v > 10",
        "FROM t SELECT id, v WHERE v > 10",
        "FROM t |> WHERE v > 10 |> SELECT id, v",
        "FROM t |> WHERE v > 10",
    ],
)
def test_what_comes_out_makes_the_table(query: Query, sql: str) -> None:
    found, expected = query(sql)
    assert found == expected and expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, n, x FROM t UNPIVOT (x FOR n IN (v))",
        "SELECT k FROM (SELECT id, v FROM t) AS s(k, w)",
    ],
)
def test_a_query_that_would_forget_what_happened_is_refused(query: Query, sql: str) -> None:
    with pytest.raises(RunError, match="MS030"):
        query(sql)
