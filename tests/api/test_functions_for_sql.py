"""`env.function`: functions for SQL from the Python front door."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millstream import PrintSink, StreamEnvironment, col, function
from millstream.errors import MillstreamError, SpecError
from millstream.rules import check


@function(returns=pa.int64())
def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def undeclared(values: pa.Array) -> pa.Array:
    return values


def test_a_decorated_function_is_still_itself() -> None:
    assert twice(pa.array([1, None])).to_pylist() == [2, None]


def test_a_wrong_type_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ValueError, match="int64"):
        function(returns="int46")


def test_it_is_written_to_yaml_by_name() -> None:
    env = StreamEnvironment("p")
    env.function(twice)
    env.function(undeclared, "plain", returns="list<string>", aggregate=True)
    env.from_rows([{"id": 1}]).to(PrintSink())
    text = env.topology().to_yaml()
    assert f"twice: {__name__}:twice" in text
    assert "returns: list<string>" in text


def test_a_lambda_runs_and_is_not_written() -> None:
    env = StreamEnvironment("p")
    env.function(lambda values: values, "same", returns="int64")
    with pytest.raises(SpecError, match="MS034"):
        env.topology().to_yaml()


def test_a_name_is_taken_once() -> None:
    env = StreamEnvironment("p")
    env.function(twice)
    with pytest.raises(SpecError, match="MS020"):
        env.function(twice)


def test_an_undeclared_type_is_found_by_a_check() -> None:
    env = StreamEnvironment("p")
    env.function(undeclared)
    env.from_rows([{"id": 1}]).to(PrintSink())
    assert [finding.code for finding in check(env.topology())] == ["MS018"]


@pytest.mark.spark
def test_expressions_and_sql_call_it(spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = StreamEnvironment("p", spark=spark)
    double_it = env.function(twice, "double_it")
    stream = env.from_rows([{"id": 1}, {"id": 2}]).filter(double_it(col("id")) > 2).with_columns(n=double_it(double_it(col("id"))))
    assert stream.collect().to_pylist() == [{"id": 2, "n": 8}]


@pytest.mark.spark
def test_without_registering_it_spark_does_not_know_it(spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = StreamEnvironment("p", spark=spark)
    with pytest.raises(MillstreamError, match="double_it"):
        env.from_rows([{"id": 1}]).filter("double_it(id) > 2").collect()
