"""256-bit integers compute, compare and sort as Python's integers do, and refuse what does not fit."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RANGES = {"u256": (0, 2**256 - 1), "i256": (-(2**255), 2**255 - 1)}
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "mod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def pairs(kind: str) -> list[tuple[int, int]]:
    low, high = RANGES[kind]
    chance = random.Random(kind)
    edges = [low, low + 1, 0, 1, 2, 255, 256, 2**64, 2**127, high - 1, high]
    drawn = [(chance.randint(low, high) >> chance.randrange(256), chance.randint(low, high) >> chance.randrange(256)) for _ in range(1500)]
    return [*((a, b) for a in edges for b in edges), *drawn]


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("verb", OPERATIONS)
def test_results_are_those_of_python(spark: SparkSession, kind: str, verb: str) -> None:
    low, high = RANGES[kind]
    fit = [(a, b) for a, b in pairs(kind) if not (verb in ("div", "mod") and b == 0) and low <= OPERATIONS[verb](a, b) <= high]
    assert len(fit) > 500
    table = pa.table({"n": range(len(fit)), "a": [str(a) for a, _ in fit], "b": [str(b) for _, b in fit]})
    call = f"{kind}_to_string({kind}_{verb}(to_{kind}(a), to_{kind}(b)))"
    found = {row.n: int(row.found) for row in spark.createDataFrame(table).selectExpr("n", f"{call} AS found").collect()}
    assert [found[n] for n in range(len(fit))] == [OPERATIONS[verb](a, b) for a, b in fit]


@pytest.mark.parametrize("kind", RANGES)
def test_they_sort_and_compare_as_numbers(spark: SparkSession, kind: str) -> None:
    numbers = sorted({a for a, _ in pairs(kind)})
    table = pa.table({"a": [str(a) for a in random.Random(1).sample(numbers, len(numbers))]})
    frame = spark.createDataFrame(table).selectExpr("a", f"to_{kind}(a) AS value")
    assert [int(row.a) for row in frame.orderBy("value").collect()] == numbers
    bounds = frame.selectExpr(f"{kind}_to_string(min(value)) AS least", f"{kind}_to_string(max(value)) AS most").collect()[0]
    assert (int(bounds.least), int(bounds.most)) == (numbers[0], numbers[-1])


def test_signs(spark: SparkSession) -> None:
    row = spark.sql("SELECT i256_to_string(i256_neg(to_i256(5))) AS n, i256_to_string(i256_abs(to_i256('-0x10'))) AS a").collect()[0]
    assert (row.n, row.a) == ("-5", "16")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("u256_add(to_u256('0x{high}'), to_u256(1))", "u256_add: overflow"),
        ("u256_sub(to_u256(1), to_u256(2))", "u256_sub: overflow"),
        ("u256_mul(to_u256('0x{high}'), to_u256(2))", "u256_mul: overflow"),
        ("u256_div(to_u256(1), to_u256(0))", "u256_div: division by zero"),
        ("to_u256('-1')", "to_u256: overflow"),
        ("to_u256('0x1{high}')", "to_u256: overflow"),
        ("to_i256('0x{high}')", "to_i256: overflow"),
        ("i256_neg(to_i256('-{half}'))", "i256_neg: overflow"),
        ("i256_abs(to_i256('-{half}'))", "i256_abs: overflow"),
        ("i256_div(to_i256('-{half}'), to_i256(-1))", "i256_div: overflow"),
        ("to_u256('1.5')", "to_u256: '1.5' is no integer"),
        ("to_u256('')", "to_u256: '' is no integer"),
        ("to_u256('0x-5')", "to_u256: '0x-5' is no integer"),
        ("to_u256('1e999999999')", "to_u256"),
        ("i256_to_bigint(to_i256('9223372036854775808'))", "i256_to_bigint: overflow"),
        ("u256_add(X'00', to_u256(1))", "u256_add: an argument has 1 bytes instead of 32"),
    ],
)
def test_what_does_not_fit_is_an_error(spark: SparkSession, call: str, message: str) -> None:
    given = call.format(high="f" * 64, half=2**255)
    with pytest.raises(Exception, match=message):
        spark.range(2).selectExpr(f"{given} AS found", "id").collect()
