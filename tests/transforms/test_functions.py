"""Functions of the user's on Spark: arrays in, one array out; aggregates over the values of each group."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millstream import function
from millstream.engine.lowering.functions import functions_registered
from millstream.errors import RunError
from millstream.plan.declarations import user_function
from millstream.sql.catalyst import names
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.calls import rewrite_plan
from millstream.sql.catalyst.user_aggregates import collecting
from millstream.sql.check import builtins
from millstream.sql.check.builtins import BUILTINS
from millstream.sql.own_functions import OWN_FUNCTIONS

pytestmark = pytest.mark.spark
ROWS = "(SELECT id % 2 AS k, nullif(id, 4) AS x, id * 1.5D AS w FROM range(7))"


@function(returns="int64")
def twice(values: pa.Array) -> pa.Array:
    assert isinstance(values, pa.Array)
    return pc.multiply(values, 2)


@function(returns="string")
def join(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(left, right, "-")


@function(returns="list<int64>")
def backwards(lists: pa.Array) -> pa.Array:
    return pa.array([None if values is None else values[::-1] for values in lists.to_pylist()], pa.list_(pa.int64()))


@function(returns="float64", aggregate=True)
def middle(values: pa.Array) -> Any:
    return pc.quantile(values, 0.5)[0]


@function(returns="int64", aggregate=True)
def how_many(values: pa.Array) -> int:
    return len(values)


@function(returns="float64", aggregate=True)
def weighted(values: pa.Array, weights: pa.Array) -> pa.Scalar:
    assert len(values) == len(weights)
    return pc.sum(pc.multiply(values, weights))


@function(returns="string", aggregate=True)
def names_of(values: pa.Array) -> str:
    return ",".join(values.field("n").to_pylist())


FUNCTIONS = tuple(user_function(made.__name__, made) for made in (twice, join, backwards, middle, how_many, weighted, names_of))
AGGREGATES = [used.name for used in FUNCTIONS if used.aggregates(Path())]


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    bridge = Bridge(spark)

    def go(text: str) -> list[tuple[Any, ...]]:
        plan = rewrite_plan(bridge, names.parse(bridge, text), collecting(AGGREGATES))
        return sorted((tuple(row) for row in bridge.frame(plan).collect()), key=str)

    with functions_registered(spark, FUNCTIONS, tmp_path):
        yield go


@contextmanager
def one(spark: Any, folder: Path, call: Any, **options: Any) -> Iterator[None]:
    with functions_registered(spark, (user_function("f", {"function": call, **options}),), folder):
        yield


def test_numbers_and_nulls(query: Callable) -> None:
    assert query(f"SELECT twice(x) FROM {ROWS}") == [(0,), (10,), (12,), (2,), (4,), (6,), (None,)]


def test_a_constant_arrives_as_an_array(query: Callable) -> None:
    assert query("SELECT twice(21), twice(NULL)") == [(42, None)]


def test_texts_and_two_arguments(query: Callable) -> None:
    assert query("SELECT join(a, 'x') FROM VALUES ('ü'), (NULL) AS t(a)") == [("ü-x",), (None,)]


def test_lists(query: Callable) -> None:
    assert query("SELECT backwards(a) FROM VALUES (array(1L, 2L)), (NULL), (array()) AS t(a)") == [(None,), ([2, 1],), ([],)]


def test_calls_within_calls_and_in_conditions(query: Callable) -> None:
    assert query(f"SELECT twice(twice(x)) FROM {ROWS} WHERE twice(x) > 10") == [(24,)]


def test_an_aggregate_sees_the_values_of_its_group_without_nulls(query: Callable) -> None:
    assert query(f"SELECT k, middle(x), how_many(x), count(*) FROM {ROWS} GROUP BY k") == [(0, 2.0, 3, 4), (1, 3.0, 3, 3)]


def test_arguments_of_an_aggregate_stay_side_by_side(query: Callable) -> None:
    expected = [(0, 0 + 2 * 3.0 + 6 * 9.0), (1, 1 * 1.5 + 3 * 4.5 + 5 * 7.5)]
    assert query(f"SELECT k, weighted(x, w) FROM {ROWS} GROUP BY k") == expected


def test_a_filter_belongs_to_the_call(query: Callable) -> None:
    assert query(f"SELECT k, how_many(x) FILTER (WHERE x > 2) AS n FROM {ROWS} GROUP BY k") == [(0, 1), (1, 2)]


def test_a_group_of_nothing_is_an_empty_array(query: Callable) -> None:
    assert query("SELECT how_many(x), middle(x) FROM VALUES (CAST(NULL AS BIGINT)) AS t(x)") == [(0, None)]


def test_one_argument_that_is_a_struct_is_one_argument(query: Callable) -> None:
    assert query("SELECT names_of(struct(n, 1)) FROM VALUES ('a'), ('b') AS t(n)") == [("a,b",)]


def test_aggregates_and_scalars_combine(query: Callable) -> None:
    assert query(f"SELECT k, twice(how_many(twice(x))) + 1 FROM {ROWS} GROUP BY k HAVING middle(x) > 2") == [(1, 7)]


def test_results_are_cast_where_nothing_is_lost(spark: Any, tmp_path: Path) -> None:
    with one(spark, tmp_path, lambda x: x, returns="float64"):
        assert spark.sql("SELECT f(CAST(3 AS INT))").collect()[0][0] == 3.0


def test_names_are_gone_after_the_run(spark: Any, tmp_path: Path) -> None:
    with one(spark, tmp_path, twice):
        assert spark.catalog.functionExists("f")
        with pytest.raises(RunError, match="already has a function `f`"), one(spark, tmp_path, twice):
            pass
        assert spark.sql("SELECT f(1L)").collect()[0][0] == 2
    assert not spark.catalog.functionExists("f")


def test_a_function_without_a_type_is_refused_when_loaded(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="MS018"), one(spark, tmp_path, lambda x: x):
        pass


def test_the_names_of_sparks_own_functions_are_all_known(spark: Any) -> None:
    listed = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert {name for name in listed if name.isidentifier()} - set(OWN_FUNCTIONS) == BUILTINS


def test_sparks_own_aggregates_are_all_known(spark: Any) -> None:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction()
    infos = [registry.lookupFunction(names.apply(index)) for index in range(names.size())]
    found = {names.apply(index).funcName() for index, info in enumerate(infos) if info.isDefined() and info.get().getGroup() == "agg_funcs"}
    assert found == builtins.AGGREGATES
