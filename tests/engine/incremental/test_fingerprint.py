"""State belongs to one query: the same query uses it again after a restart, and a changed one does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.incremental.keeper import Keeper

from millstream.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
COLUMNS = [f"v{place}" for place in range(60)]
MANY = f"SELECT k, {', '.join(f'max({name}) AS {name}' for name in COLUMNS)} FROM t GROUP BY k HAVING count(*) > 0"
NESTED = f"SELECT k, max(array({', '.join(COLUMNS)})) AS m FROM t GROUP BY k HAVING count(*) > 0"
WIDE = {"t": f"k string, {', '.join(f'{name} bigint' for name in COLUMNS)}"}
NARROW = {"t": "k string, v bigint, l array<int>"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count_if(v BETWEEN 1 AND 3) AS n, max(v) AS m FROM t GROUP BY k",
        "SELECT k, max(transform(l, x -> x + 1)) AS l FROM t GROUP BY k",
        "SELECT k, max_by(array_compact(l), v) AS l FROM t GROUP BY k",
        "SELECT k, count(DISTINCT nullif(v, 2)) AS n FROM t GROUP BY k",
        "SELECT k, count(DISTINCT v) AS a, count(DISTINCT l) AS b, sum(DISTINCT v + 1) AS c, count_if(v > 1) AS d FROM t GROUP BY k",
        "SELECT k, (SELECT max(v) FROM t) AS m FROM t WHERE v IN (SELECT v FROM t WHERE v > 1)",
    ],
)
def test_the_same_query_continues(sql: str, spark: SparkSession, tmp_path: Path) -> None:
    for epoch in range(4):  # several starts: what follows Spark's hashes may be the same by chance
        Keeper(spark, sql, tmp_path, NARROW).step(epoch, t=[("a", 2 + epoch, [epoch], 1)])


@pytest.mark.parametrize(
    ("before", "after", "tables"),
    [
        (MANY, MANY.replace("max(v50)", "min(v50)"), (WIDE, WIDE)),
        (NESTED, NESTED.replace("v40, v41", "v41, v40"), (WIDE, WIDE)),
        ("SELECT DISTINCT k, x FROM t, VALUES (1) AS f(x)", "SELECT DISTINCT k, x FROM t, VALUES (2) AS f(x)", (NARROW, NARROW)),
        ("SELECT DISTINCT k, v FROM t", "SELECT DISTINCT k, v FROM t", (NARROW, {"t": "k string, v int, l array<int>"})),
        ("SELECT DISTINCT k FROM t", "SELECT DISTINCT k FROM t", (NARROW, {"t": "k int, v bigint, l array<int>"})),
    ],
    ids=["far to the right", "far to the right in a call", "rows of the query itself", "the type of a column", "the type of the key"],
)
def test_a_changed_query_is_refused(
    before: str, after: str, tables: tuple[dict[str, str], dict[str, str]], spark: SparkSession, tmp_path: Path
) -> None:
    Keeper(spark, before, tmp_path, tables[0]).step(0)
    with pytest.raises(RunError, match="MS053"):
        Keeper(spark, after, tmp_path, tables[1]).step(1)
