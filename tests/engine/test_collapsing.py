"""The last row of each key: by `_seq` where there is one, else by the rows' places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("rows", "columns", "last"),
    [
        ("(1, 'old', 2), (1, 'new', 3), (1, 'older', 1), (2, 'x', 0)", "id, v, _seq", [(1, "new"), (2, "x")]),
        ("(1, 'first', 7), (1, 'second', 7)", "id, v, _seq", [(1, "second")]),
        ("(1, 'numbered', 7), (1, 'not', NULL)", "id, v, _seq", [(1, "numbered")]),
        ("(1, 'b'), (1, 'c'), (1, 'a'), (NULL, 'x'), (NULL, 'y')", "id, v", [(1, "a"), (None, "y")]),
    ],
)
def test_the_last_row_is_left(spark: SparkSession, rows: str, columns: str, last: list[tuple[int | None, str]]) -> None:
    from millstream.engine.epoch.last_per_key import last_per_key

    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS rows ({columns})").coalesce(1)
    found = last_per_key(frame, ("id",))
    assert found.columns == frame.columns
    assert sorted(((row["id"], row["v"]) for row in found.collect()), key=str) == sorted(last, key=str)
