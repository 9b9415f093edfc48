"""The clock stands still within an epoch: in the plan, wherever it is read, with the types and names that Spark gives."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest

from millstream.transforms.filter import Filter
from millstream.transforms.route import Route
from millstream.transforms.select import Select
from millstream.transforms.sql import Sql

pytestmark = pytest.mark.spark
CLOCK = "2026-01-02 03:04:05.678000"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000)
ROW = "SELECT 1 AS id"


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("now()", MOMENT, "timestamp"),
        ("current_timestamp", MOMENT, "timestamp"),
        ("CURRENT_TIMESTAMP()", MOMENT, "timestamp"),
        ("current_date", date(2026, 1, 2), "date"),
        ("curdate()", date(2026, 1, 2), "date"),
        ("localtimestamp()", MOMENT, "timestamp_ntz"),
        ("unix_timestamp()", 1767323045, "bigint"),
        ("now() - INTERVAL 1 DAY", datetime(2026, 1, 1, 3, 4, 5, 678000), "timestamp"),
        ("'now()'", "now()", "string"),
    ],
)
def test_every_clock_is_the_time_of_the_epoch(apply: Callable, text: str, value: object, kind: str) -> None:
    frame = apply(Sql(sql=f"SELECT {text} AS v FROM rows"), clock=CLOCK, rows=ROW)
    assert frame.collect()[0]["v"] == value
    assert dict(frame.dtypes)["v"] == kind


def test_a_column_may_be_named_like_a_clock(result: Callable) -> None:
    assert result(Sql(sql="SELECT current_date FROM rows"), clock=CLOCK, rows="SELECT 5 AS current_date") == [{"current_date": 5}]


def test_a_column_without_a_name_is_called_as_in_spark(apply: Callable, spark: Any) -> None:
    text = "SELECT now(), current_date, unix_timestamp() FROM rows"
    expected = spark.sql(text.replace("FROM rows", "")).columns
    assert apply(Sql(sql=text), clock=CLOCK, rows=ROW).columns == expected


def test_conditions_and_subqueries_have_the_same_clock(result: Callable) -> None:
    text = """
        WITH new AS (SELECT id, now() AS at FROM rows WHERE now() < TIMESTAMP '2026-01-03')
        SELECT id, at, transform(array(1), x -> current_date) AS days FROM (SELECT * FROM new WHERE at = current_timestamp)
    """
    assert result(Sql(sql=text), clock=CLOCK, rows=ROW) == [{"id": 1, "at": MOMENT, "days": [date(2026, 1, 2)]}]


@pytest.mark.parametrize("isolate", [False, True])
def test_other_transforms_have_it_too(result: Callable, isolate: bool) -> None:
    assert len(result(Filter(where="now() < TIMESTAMP '2026-01-03'"), clock=CLOCK, isolate=isolate, rows=ROW)) == 1
    assert result(Select(columns={"t": "now()"}), clock=CLOCK, isolate=isolate, rows=ROW)[0]["t"] == MOMENT
    (row,) = result(Route(routes={"new": "now() < TIMESTAMP '2026-01-03'"}), clock=CLOCK, isolate=isolate, rows=ROW)
    assert "new" in row.values()


def test_without_an_epoch_the_clock_is_sparks(apply: Callable) -> None:
    assert apply(Sql(sql="SELECT now() AS at FROM rows"), rows=ROW).collect()[0]["at"] > MOMENT
