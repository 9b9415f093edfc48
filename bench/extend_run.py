"""Runs functions of SQL and the same in pandas UDFs, in turns in one session. Prints the seconds of each."""

from __future__ import annotations

import json
import time
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # its stubs are not installed
from pyspark.sql.pandas.functions import pandas_udf

from millstream.jvm.session import SessionOptions, begin

ROWS = 1_000_000
_TURNS = 6
"""The first turn is not counted."""


def main() -> None:
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    spark = session.spark
    long = "concat('1234567890123456789012345678901234567890', id) AS b"
    rows = spark.range(ROWS, numPartitions=2).selectExpr("id", "CAST(id AS STRING) AS a", long).persist()
    rows.count()
    wide = rows.selectExpr("id", "to_u256(a) AS a", "to_u256(b) AS b").persist()
    wide.count()
    by_hand = _functions()
    works: dict[str, tuple[Any, Any]] = {
        "u256: sum of two": (wide.selectExpr("u256_add(a, b) AS c"), wide.select(by_hand["add"]("a", "b"))),
        "u256: comparison": (wide.where("a < b").select("id"), wide.where(by_hand["less"]("a", "b")).select("id")),
        "u256: from text, sum, to text": (
            rows.selectExpr("u256_to_string(u256_add(to_u256(a), to_u256(b))) AS c"),
            rows.select(by_hand["add_texts"]("a", "b")),
        ),
        "base58": (rows.selectExpr("to_base58(b) AS c"), rows.select(by_hand["base58"]("b"))),
    }
    found: dict[str, dict[str, list[float]]] = {}
    for work, (ours, theirs) in works.items():
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for turn in range(_TURNS):
            for whose, frame in (("ours", ours), ("theirs", theirs)):
                taken = _seconds(frame)
                if turn:
                    times[whose].append(taken)
        found[work] = times
    session.close()
    print(json.dumps(found))


def _seconds(frame: Any) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def _functions() -> dict[str, Any]:
    """The same with Python's integers."""
    digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

    def add(a: pd.Series, b: pd.Series) -> pd.Series:
        return pd.Series([(int.from_bytes(x) + int.from_bytes(y)).to_bytes(32) for x, y in zip(a, b, strict=True)])

    def less(a: pd.Series, b: pd.Series) -> pd.Series:
        return pd.Series([int.from_bytes(x) < int.from_bytes(y) for x, y in zip(a, b, strict=True)])

    def add_texts(a: pd.Series, b: pd.Series) -> pd.Series:
        return pd.Series([str(int(x) + int(y)) for x, y in zip(a, b, strict=True)])

    def base58(texts: pd.Series) -> pd.Series:
        def shown(text: str) -> str:
            number, found = int.from_bytes(text.encode()), []
            while number:
                number, digit = divmod(number, 58)
                found.append(digits[digit])
            return "".join(reversed(found))

        return texts.map(shown)

    kinds = {add: "binary", less: "boolean", add_texts: "string", base58: "string"}
    declare: Any = pandas_udf
    return {each.__name__: declare(each, kind) for each, kind in kinds.items()}


if __name__ == "__main__":
    main()
