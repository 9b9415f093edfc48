"""The filter of somebody who watches rows is an expression over one row: mistakes are marked, and it reaches nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millstream.sql.check.row_filters import refuse_filter

SCHEMA = pa.schema([("amount", pa.int64()), ("user", pa.string()), ("address", pa.struct([("city", pa.string())]))])


@pytest.mark.parametrize(
    "text",
    ["amount > 3", "address.city = 'x' AND upper(user) LIKE 'A%'", "exists(array(1, 2), x -> x > amount)", "user LIKE 'select%'", "amount"],
)
def test_an_expression_over_a_row_passes(text: str) -> None:
    assert refuse_filter(text, SCHEMA) is None


def test_an_unknown_column_is_marked_and_the_nearest_is_named() -> None:
    found = refuse_filter("user = 'a' AND amuont > 3", SCHEMA)
    assert found is not None
    assert (found.code, found.help) == ("MS024", "did you mean `amount`?")
    assert found.detail == "user = 'a' AND amuont > 3\n               ^^^^^^"
    assert refuse_filter("amuont > 3", None) is None, "without a schema Spark decides"


@pytest.mark.parametrize("text", ["amount >", "", "amount > 3 adn true", "user) OR (true", "user = 'a"])
def test_a_text_that_does_not_parse_is_refused(text: str) -> None:
    found = refuse_filter(text, SCHEMA)
    assert found is not None
    assert found.code == "MS027"


@pytest.mark.parametrize(
    "text",
    [
        "count(*) > 1",
        "user IN (SELECT 1)",
        "EXISTS (SELECT 1 FROM json.`/etc/hosts`)",
        "(SELECT max(a) FROM csv.`/x`) > 1",
        "user IN (VALUES ('a'))",
        "java_method('java.lang.System', 'exit', 0) = 1",
        "`reflect`('java.lang.System', 'exit', 0) = 1",
    ],
)
def test_what_reads_more_than_the_row_is_refused(text: str) -> None:
    found = refuse_filter(text, SCHEMA)
    assert found is not None
    assert found.code == "MS030"
