"""Rows from Python and back: typed as the schema says, cut into epochs, kept for restarts."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.connectors.conftest import opened

from millstream.connectors.memory.sink import MemorySink
from millstream.connectors.memory.source import MemorySource
from millstream.errors import SpecError

TYPED = {
    "id": "int64",
    "amount": "decimal(18,2)",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "tags": "list<string>",
    "deep": "struct<at: timestamp, n: int32>",
    "map": "map<string, int64>",
    "raw": "binary",
}
TEXTS = {
    "id": 1,
    "amount": "19.99",
    "at": "2026-01-01T00:00:00.000001+01:00",
    "local": "2026-01-01T00:00:00",
    "day": "2026-01-02",
    "tags": ["a", None],
    "deep": {"at": "2026-01-01T00:00:00Z", "n": 3},
    "map": {"x": 1},
    "raw": "bytes",
}


def again(source: MemorySource) -> MemorySource:
    return MemorySource.model_validate(source.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def test_types_are_found_in_all_rows() -> None:
    schema = MemorySource(rows=({"a": 1}, {"a": 2.5, "b": "x"}, {"c": None})).output()
    assert {field.name: str(field.type) for field in schema} == {"a": "double", "b": "string", "c": "string"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "`schema` must name the columns"),
        ({"rows": ({"a": "x"},), "schema": {"a": "int64"}}, "do not fit as int64"),
        ({"rows": ({"a": 1}, {"a": "x"})}, "do not fit in one column"),
        ({"rows": ({"a": 1, "b": 2},), "schema": {"a": "int64"}}, "have `b`, which is not in the schema"),
        ({"batches": (pa.RecordBatch.from_pydict({"a": pa.array([1], pa.uint32())}),)}, "has the type uint32"),
        ({"rows": ({"a": 1},), "batches": (pa.RecordBatch.from_pydict({"a": [1]}),)}, "not both"),
    ],
)
def test_rows_that_do_not_fit_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        MemorySource(**options)


def test_plans_with_times_decimals_and_batches_survive_the_way_to_yaml_and_back() -> None:
    typed = MemorySource(rows=({"at": datetime(2026, 1, 1, tzinfo=UTC), "n": Decimal("1.50"), "d": date(2026, 1, 1), "l": (1, 2)},))
    held = MemorySource(batches=(pa.RecordBatch.from_pydict({"a": [1, 2]}), pa.RecordBatch.from_pydict({"a": [3]})))
    for source in (typed, held):
        assert again(source) == source
        assert hash(again(source)) == hash(source)
        assert again(source).output() == source.output()


def test_batches_are_compared_by_what_they_hold() -> None:
    one, same, other = (MemorySource(batches=(pa.RecordBatch.from_pydict({"a": [n]}),)) for n in (1, 1, 2))
    assert (one == same, hash(one) == hash(same), one == other) == (True, True, False)


def test_two_memory_sinks_are_the_same_plan_whatever_they_hold(epoch: Callable) -> None:
    from millstream.plan.components import Staged

    full, empty = MemorySink(), MemorySink()
    opened(full).commit(Staged(1, pa.table({"a": [1]})), epoch())
    assert (full == empty, hash(full) == hash(empty)) == (True, True)
    assert (full.rows(), empty.rows()) == ([{"a": 1}], [])


def test_a_repeated_epoch_replaces_itself(epoch: Callable) -> None:
    from millstream.plan.components import Staged

    sink = MemorySink()
    for number, value in ((0, 1), (1, 2), (1, 3)):
        opened(sink).commit(Staged(1, pa.table({"a": [value]})), epoch(number, f"d{value}"))
    opened(sink).commit(Staged(1, pa.table({"b": ["other query"]})), epoch(7, "x", query="q2"))
    assert sink.rows() == [{"a": 1, "b": None}, {"a": 3, "b": None}, {"a": None, "b": "other query"}]
    held = opened(sink).ledger(None, epoch())
    assert held
    assert (held.epoch, held.digest) == (1, "d3")
    assert opened(sink).ledger(None, epoch(sink="else")) is None


@pytest.mark.spark
def test_every_type_arrives_as_declared(spark: Any, context: Callable, rows: Callable) -> None:
    (row,) = rows(MemorySource(rows=(TEXTS,), schema=TYPED).open(context()).read(spark))
    assert row["amount"] == Decimal("19.99")
    assert (row["at"], row["local"]) == (datetime(2025, 12, 31, 23, 0, 0, 1), datetime(2026, 1, 1))
    assert (row["day"], row["tags"], row["map"], bytes(row["raw"])) == (date(2026, 1, 2), ["a", None], {"x": 1}, b"bytes")
    assert row["deep"] == {"at": datetime(2026, 1, 1), "n": 3}


@pytest.mark.spark
def test_batches_and_slices_are_epochs_in_order(spark: Any, context: Callable, drain: Callable) -> None:
    held = MemorySource(batches=tuple(pa.RecordBatch.from_pydict({"a": [n, n + 1]}) for n in (10, 20, 30)))
    assert drain(held.open(context("held")).read(spark), "held") == [[{"a": n}, {"a": n + 1}] for n in (10, 20, 30)]
    cut = MemorySource(rows=tuple({"a": n} for n in range(5)), rows_per_epoch=2)
    assert [[row["a"] for row in part] for part in drain(cut.open(context("cut")).read(spark), "cut")] == [[0, 1], [2, 3], [4]]
    assert [opened(cut).is_exhausted({"logOffset": n}) for n in range(3)] == [False, False, True]


@pytest.mark.spark
def test_a_restart_goes_on_with_the_rows_it_began_with(spark: Any, context: Callable, rows: Callable) -> None:
    assert rows(MemorySource(rows=({"a": 1},)).open(context()).read(spark)) == [{"a": 1}]
    assert rows(MemorySource(rows=({"a": 2},)).open(context()).read(spark), "again") == [{"a": 1}]


@pytest.mark.spark
def test_no_rows_are_an_end_too(spark: Any, context: Callable, rows: Callable) -> None:
    assert rows(MemorySource(schema={"a": "int64"}).open(context()).read(spark)) == []


@pytest.mark.spark
def test_what_spark_computes_comes_back(spark: Any, epoch: Callable) -> None:
    sink = MemorySink()
    staged = opened(sink).stage(spark.sql("SELECT id, 'x' AS s FROM range(3)"), epoch())
    assert (staged.rows, sink.rows()) == (3, [])
    opened(sink).commit(staged, epoch())
    assert [row["id"] for row in sink.rows()] == [0, 1, 2]
