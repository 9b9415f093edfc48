"""Every example of the functions that Millstream adds gives the value beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millstream.sql.own_functions import GROUPS, NULLS, OWN_FUNCTIONS

pytestmark = pytest.mark.spark
EXAMPLES = [pytest.param(call, value, id=call) for group in GROUPS.values() for each in group for call, value in each.examples]


def shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, list):
        plain = [each.asDict() if hasattr(each, "asDict") else each for each in value]
        return json.dumps(plain, separators=(",", ":"))
    return str(value)


@pytest.mark.parametrize(("call", "value"), EXAMPLES)
def test_an_example_gives_its_value(spark: SparkSession, call: str, value: str) -> None:
    assert shown(spark.sql(f"SELECT {call} AS found").collect()[0].found) == value
    column = spark.range(3).selectExpr(f"{call} AS found")
    assert {shown(row.found) for row in column.collect()} == {value}, "in generated code"


def test_every_name_is_a_function_of_the_session_with_its_number_of_arguments(spark: SparkSession) -> None:
    for name, each in OWN_FUNCTIONS.items():
        assert spark.catalog.functionExists(name)
        least, most = each.counts
        for wrong in {least - 1, most + 1 if most is not None else least - 1}:
            with pytest.raises(Exception, match=f"`{name}` requires {least}"):
                spark.sql(f"SELECT {name}({', '.join(['NULL'] * wrong)})").collect()


def test_null_gives_null_where_the_page_says_so(spark: SparkSession) -> None:
    for name, each in OWN_FUNCTIONS.items():
        if each.nulls.startswith(NULLS):
            nulls = ", ".join("NULL" if " array" not in given else "CAST(NULL AS ARRAY<INT>)" for given in each.arguments.split(", "))
            assert spark.sql(f"SELECT {name}({nulls}) AS found").collect()[0].found is None, name
