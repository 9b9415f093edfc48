"""Spark accepts every query that `check` must not accuse."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql import (
    test_columns_of_using_and_having,
    test_grouped_columns,
    test_hints_and_pipes,
    test_joins_without_a_condition,
    test_numbers_of_columns,
    test_values_that_add_up,
    test_what_cannot_be_kept,
)
from tests.sql.checked import tables

QUERIES = [
    *test_columns_of_using_and_having.ACCEPTED,
    *test_columns_of_using_and_having.NAMED_AS_COLUMNS,
    *test_grouped_columns.ACCEPTED,
    *test_hints_and_pipes.ACCEPTED,
    *test_joins_without_a_condition.MEANT,
    *test_numbers_of_columns.ACCEPTED,
    *test_values_that_add_up.ACCEPTED,
    *test_what_cannot_be_kept.ACCEPTED,
    *test_what_cannot_be_kept.ACCEPTED_NAMES,
]


@pytest.mark.spark
def test_spark_accepts_what_is_not_accused(spark: Any) -> None:
    """By its analyser alone, over tables without rows."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    session, refused = spark.newSession(), list[str]()
    for name, schema in tables().items():
        session.createDataFrame([], from_arrow_schema(schema)).createOrReplaceTempView(name)
    for sql in QUERIES:
        try:
            session.sql(sql)
        except PySparkException as error:
            refused.append(f"{sql}: {str(error).splitlines()[0]}")
    assert not refused, "\n".join(refused)
