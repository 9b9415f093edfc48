"""Filter, select, with_columns, drop and union: what comes out, and what is found before."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.errors import SpecError
from millstream.plan.components import Transform
from millstream.plan.expressions import col
from millstream.transforms.drop import Drop
from millstream.transforms.filter import Filter
from millstream.transforms.select import Select
from millstream.transforms.union import Union
from millstream.transforms.with_columns import WithColumns

SCHEMA = pa.schema([("id", pa.int64()), ("user", pa.string())])
ONE = {"input": SCHEMA}
ROWS = "SELECT CAST(id AS bigint) AS id, concat('u', id) AS user FROM range(3)"


def found(transform: Transform, inputs: dict[str, pa.Schema | None] = ONE) -> list[tuple[str, str, str]]:
    return [(problem.code, problem.field, problem.help) for problem in transform.problems(inputs, Path())]


def types(transform: Transform, inputs: dict[str, pa.Schema | None] = ONE) -> dict[str, str]:
    output = transform.output(inputs)
    assert output is not None
    return {field.name: str(field.type) for field in output}


@pytest.mark.parametrize(
    ("transform", "field"),
    [
        (Filter(where="usr = 'a'"), "where"),
        (Select(columns=["id", "upper(usr) AS u"]), "columns.u"),
        (WithColumns(columns={"u": "upper(usr)"}), "columns.u"),
        (Drop(columns="usr"), "columns"),
    ],
    ids=["filter", "select", "with_columns", "drop"],
)
def test_unknown_columns_are_found(transform: Transform, field: str) -> None:
    assert found(transform) == [("MS024", field, "did you mean `user`?")]
    assert found(transform, {"input": None}) == []


def test_names_inside_functions_and_structs_are_no_columns() -> None:
    nested = {"input": pa.schema([("tags", pa.list_(pa.string())), ("s", pa.struct([("f", pa.int64())])), ("größe", pa.int64())])}
    assert found(Filter(where="exists(tags, x -> x = 'a') AND s.f > 1 AND `größe` > 0"), nested) == []
    assert [code for code, _, _ in found(Filter(where="exists(tags, x -> y = 'a')"), nested)] == ["MS024"]


def test_schemas_are_known_without_spark() -> None:
    assert types(Filter(where="id > 1")) == {"id": "int64", "user": "string"}
    assert types(Select(columns={"u": "upper(user)", "n": "id"})) == {"u": "string", "n": "int64"}
    assert types(WithColumns(columns={"id": "CAST(id AS string)", "new": "id + 1"})) == {"id": "string", "user": "string", "new": "int64"}
    assert types(Drop(columns="ID")) == {"user": "string"}


def test_a_select_may_be_a_list() -> None:
    assert Select(columns=["id", "id * 2 AS double"]) == Select(columns={"id": "id", "double": "id * 2"})
    assert Select(columns=[col("id"), (col("id") + 1).alias("n")]).columns == {"id": "id", "n": "id + 1"}
    with pytest.raises(SpecError, match="needs a name"):
        Select(columns=["id + 1"])


@pytest.mark.parametrize(
    "transform", [Filter(where="a > 1"), Select(columns=["a"]), WithColumns(columns={"b": "a"}), Drop(columns="a"), Union()]
)
def test_they_survive_the_way_to_yaml_and_back(transform: Transform) -> None:
    again = type(transform).model_validate(transform.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == transform
    assert hash(again) == hash(transform)


def test_dropping_everything_is_refused() -> None:
    assert [code for code, _, _ in found(Drop(columns="id, user"))] == ["MS008"]


def test_dice_are_known_to_roll() -> None:
    assert not Filter(where="rand() < 0.1").deterministic
    assert not Select(columns={"u": "uuid()"}).deterministic
    assert WithColumns(columns={"t": "now()"}).deterministic


def schema(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema(list(kinds.items()))


def test_a_union_widens_numbers_and_refuses_what_does_not_fit() -> None:
    numbers = {"a": schema(n=pa.int32(), x=pa.float32()), "b": schema(x=pa.int64(), n=pa.int64())}
    assert types(Union(), numbers) == {"n": "int64", "x": "double"}
    assert [code for code, _, _ in found(Union(), {"a": schema(n=pa.int32()), "b": schema(n=pa.string())})] == ["MS035"]


def test_a_union_of_different_columns_must_be_wanted() -> None:
    inputs = {"a": schema(n=pa.int32()), "b": schema(n=pa.int32(), m=pa.string())}
    assert [code for code, _, _ in found(Union(), inputs)] == ["MS035"]
    assert found(Union(allow_missing=True), inputs) == []
    assert types(Union(allow_missing=True), inputs) == {"n": "int32", "m": "string"}
    assert Union().output({"a": None, "b": schema(n=pa.int32())}) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (Filter(where="id > 1"), [{"id": 2, "user": "u2"}]),
        (Select(columns={"a b": "id + 1"}), [{"a b": 1}, {"a b": 2}, {"a b": 3}]),
        (WithColumns(columns={"id": "id * 10", "old": "id"}), [{"id": n * 10, "user": f"u{n}", "old": n} for n in range(3)]),
        (Drop(columns="user"), [{"id": 0}, {"id": 1}, {"id": 2}]),
    ],
    ids=["filter", "select", "with_columns", "drop"],
)
def test_rows_come_out_as_said(result: Callable, transform: Transform, expected: list) -> None:
    assert result(transform, rows=ROWS) == expected


@pytest.mark.spark
def test_the_clock_stands_still_within_an_epoch(result: Callable) -> None:
    moment, clock = datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05.000000"
    assert result(WithColumns(columns={"t": "now()"}), clock=clock, rows="SELECT 1 AS id")[0]["t"] == moment
    assert result(Select(columns={"t": "current_timestamp"}), clock=clock, rows="SELECT 1 AS id")[0]["t"] == moment
    assert result(Filter(where="now() < TIMESTAMP '2026-01-03'"), clock=clock, rows="SELECT 1 AS id") == [{"id": 1}]


@pytest.mark.spark
def test_a_union_matches_columns_by_name(result: Callable) -> None:
    rows = result(Union(), a="SELECT 1 AS n, 'x' AS s", b="SELECT 'y' AS s, 2L AS n")
    assert rows == [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]
    rows = result(Union(allow_missing=True), a="SELECT 1 AS n", b="SELECT 2 AS m", isolate=True)
    assert rows == [{"n": 1, "m": None, "_reject": None}, {"n": None, "m": 2, "_reject": None}]
