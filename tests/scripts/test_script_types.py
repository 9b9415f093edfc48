"""Every type goes through both engines without loss."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

IDENTITY = "(row) => row"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    *(
        (kind, st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1))
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    ),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=20)),
    (pa.decimal128(10, 2), st.decimals(-99999999, 99999999, places=2)),
    (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (pa.decimal128(38, 20), st.decimals(-(10**17), 10**17, places=20)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    (pa.timestamp("us"), st.datetimes()),
]
NESTING = [
    lambda leaf: (pa.list_(leaf[0]), st.lists(leaf[1] | st.none(), max_size=4)),
    lambda leaf: (
        pa.struct([("a", leaf[0]), ("__proto__", pa.string())]),
        st.fixed_dictionaries({"a": leaf[1] | st.none(), "__proto__": TEXT}),
    ),
    lambda leaf: (
        pa.map_(pa.string(), leaf[0]),
        st.dictionaries(TEXT, leaf[1] | st.none(), max_size=4).map(lambda each: list(each.items())),
    ),
    lambda leaf: (
        pa.map_(pa.int64(), pa.list_(leaf[0])),
        st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.lists(leaf[1], max_size=2), max_size=3).map(lambda each: list(each.items())),
    ),
    lambda leaf: (pa.list_(pa.struct([("constructor", leaf[0])])), st.lists(st.fixed_dictionaries({"constructor": leaf[1]}), max_size=3)),
]
KINDS = [*LEAVES, *(nest(leaf) for nest in NESTING for leaf in LEAVES)]
NAMES = [f"c{index}" for index in range(len(KINDS))]
SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _) in zip(NAMES, KINDS, strict=True)])
ROWS = st.fixed_dictionaries({name: values | st.none() for name, (_, values) in zip(NAMES, KINDS, strict=True)})


def as_text(value: Any) -> str:
    """NaN is equal to itself here, and -0 is not equal to 0."""
    return repr(value).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


@settings(max_examples=20, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROWS, min_size=1, max_size=5), start=st.integers(0, 2))
def test_what_goes_in_comes_out(runner: Callable, rows: list[dict[str, Any]], start: int) -> None:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(start)  # a part of a batch has offsets
    (came, *_) = [*runner(IDENTITY, SCHEMA, isolate=False, timeout="60s").run([batch]), batch]
    assert came.schema.types == batch.schema.types
    assert as_text(came.to_pylist()) == as_text(batch.to_pylist())


def test_the_control_sees_a_loss(runner: Callable) -> None:
    """Through a double, the last digit of a large integer is lost: the comparison above would say so."""
    batch = pa.RecordBatch.from_pylist([{"x": 2**53 + 1}], pa.schema([("x", pa.int64())]))
    (came,) = runner("(row) => ({x: BigInt(Number(row.x))})", batch.schema, isolate=False).run([batch])
    assert as_text(came.to_pylist()) != as_text(batch.to_pylist())


@pytest.mark.parametrize(
    ("kind", "value", "seen"),
    [
        ("int64", 5, "bigint 5"),
        ("int32", 5, "number 5"),
        ("float64", 0.5, "number 0.5"),
        ("decimal(10,2)", Decimal("1.50"), "string 1.50"),
        ("decimal(38,20)", Decimal("0"), "string 0.00000000000000000000"),
        ("date", dt.date(2026, 1, 2), "string 2026-01-02"),
        ("timestamp", dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC), "string 2026-01-02T03:04:05.000006Z"),
        ("timestamp_ntz", dt.datetime(2026, 1, 2), "string 2026-01-02T00:00:00.000000"),
        ("binary", b"ab", "object Uint8Array 97,98"),
        ("list<int64>", [1], "object Array 1"),
        ("map<string,int32>", [("a", 1)], "object Map [object Map]"),
        ("struct<a: int32>", {"a": 1}, "object Object [object Object]"),
        ("bool", True, "boolean true"),
    ],
)
def test_how_a_script_sees_it(results: Callable, kind: str, value: Any, seen: str) -> None:
    text = "(row) => ({t: `${typeof row.v} ${typeof row.v === 'object' ? row.v.constructor.name + ' ' : ''}${row.v}`})"
    assert results(text, [{"v": value}], {"v": kind}, schema={"t": "string"}, isolate=False) == [{"t": seen}]


@pytest.mark.parametrize(
    ("kind", "returned", "value"),
    [
        ("int64", "5", 5),
        ("int64", "-0", 0),
        ("int32", "7n", 7),
        ("float64", "-0", -0.0),
        ("float64", "1/0", math.inf),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("decimal(30,0)", "12345678901234567890123n", Decimal("12345678901234567890123")),
        ("decimal(10,2)", "'1e2'", Decimal("100.00")),
        ("date", "new Date(0)", dt.date(1970, 1, 1)),
        ("timestamp", "new Date(1)", dt.datetime(1970, 1, 1, microsecond=1000, tzinfo=dt.UTC)),
        ("timestamp", "'2026-01-01T01:00:00+01:00'", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("map<string,int32>", "{a: 1}", [("a", 1)]),
        ("list<int32>", "[1,,2]", [1, None, 2]),
    ],
)
def test_what_else_a_script_may_return(results: Callable, kind: str, returned: str, value: Any) -> None:
    (row,) = results(f"(row) => ({{v: {returned}}})", [{"x": 1}], {"x": "int32"}, schema={"v": kind}, isolate=False)
    assert as_text(row["v"]) == as_text(value)


@pytest.mark.parametrize(
    ("kind", "returned"),
    [
        ("int64", "2 ** 53"),
        ("int64", "2n ** 63n"),
        ("int64", "'5'"),
        ("decimal(4,2)", "'123.45'"),
        ("decimal(4,2)", "'1.234'"),
        ("decimal(4,2)", "NaN"),
        ("date", "'2026-02-31'"),
        ("date", "'today'"),
        ("date", "new Date(NaN)"),
        ("timestamp", "'2026-01-01T00:00:00'"),
        ("timestamp_ntz", "'2026-01-01T00:00:00Z'"),
        ("float32", "1e300"),
        ("binary", "'ab'"),
        ("map<int32,int32>", "{1: 1}"),
        ("struct<a: int32>", "{b: 1}"),
        ("list<int32>", "'abc'"),
    ],
)
def test_what_does_not_fit_is_rejected_and_not_bent(results: Callable, kind: str, returned: str) -> None:
    rows = results(f"(row) => ({{v: row.x === 1 ? {returned} : null}})", [{"x": 0}, {"x": 1}, {"x": 2}], {"x": "int32"}, schema={"v": kind})
    assert [row["_reject"] is None for row in rows] == [True, True, False]
    assert "v" in rows[2]["_reject"]["error"] or "date" in rows[2]["_reject"]["error"]


def test_a_type_without_a_counterpart_is_refused_at_once(runner: Callable, tmp_path: Path) -> None:
    from millstream.errors import RunError

    with pytest.raises(RunError, match="MS197"):
        runner(IDENTITY, pa.schema([("d", pa.duration("us"))]))
