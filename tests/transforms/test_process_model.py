"""Any rows in any epochs: a process function sees what a plain program over the same rows would, with and without Spark in between."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transforms.streams import Bucket, Stream, flat, main_rows

from millstream import BucketFunction, BucketResult, ProcessFunction, ValueState
from millstream.transforms.process import Process

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
ROWS = st.lists(
    st.fixed_dictionaries({"user": st.sampled_from(["a", "b", "c", "d"]), "n": st.integers(-9, 9), "at": st.integers(1, 60)}), max_size=8
)
EPOCHS = st.lists(ROWS, min_size=1, max_size=6)


def timed(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": T0 + timedelta(minutes=row["at"])}


class Sums(ProcessFunction):
    """A running sum per row; five minutes after its time each row is taken back."""

    output = {"user": "string", "what": "string", "sum": "int64"}
    state = {"sum": ValueState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        for row in rows.to_pylist():
            state["sum"].set(state["sum"].get(0) + row["n"])
            timers.at(row["at"] + timedelta(minutes=5))
            yield {"user": key, "what": "row", "sum": state["sum"].get()}

    def on_timer(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        state["sum"].set(state["sum"].get() - 1)
        yield {"user": key, "what": f"timer {(time - T0) // timedelta(minutes=1)}", "sum": state["sum"].get()}


def model(epochs: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    """The same with dictionaries."""
    sums: dict[str, int] = {}
    timers: dict[str, set[int]] = {}
    out: list[tuple[Any, ...]] = []
    latest = watermark = 0

    def fire(user: str) -> None:
        for time in sorted(time for time in timers.get(user, ()) if time <= watermark):
            timers[user].discard(time)
            sums[user] -= 1
            out.append((user, f"timer {time}", sums[user]))

    for rows in [*epochs, []]:
        watermark = latest
        for user in "abcd":
            fire(user)
            for row in sorted((row for row in rows if row["user"] == user), key=lambda row: row["at"]):
                sums[user] = sums.get(user, 0) + row["n"]
                timers.setdefault(user, set()).add(row["at"] + 5)
                out.append((user, "row", sums[user]))
            fire(user)
        latest = max([latest, *(row["at"] for row in rows)])
    return out


def by_user(rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    return {user: [row for row in rows if row[0] == user] for user in "abcd"}


@settings(deadline=None, max_examples=150)
@given(EPOCHS)
def test_a_bucket_does_what_the_model_does(epochs: list[list[dict[str, Any]]]) -> None:
    bucket, out, latest = Bucket(Sums, SCHEMA), [], 0
    for rows in [*epochs, []]:
        out += main_rows(bucket.epoch([timed(row) for row in rows], T0 + timedelta(minutes=latest) if latest else None))
        latest = max([latest, *(row["at"] for row in rows)])
    assert by_user([tuple(row.values()) for row in out]) == by_user(model(epochs))


class WholeSums(BucketFunction):
    output = {"user": "string", "sum": "int64"}
    state = {"user": "string", "sum": "int64"}

    def process(self, keys: tuple[str, ...], rows: pa.Table, state: pa.Table, moment: Any) -> BucketResult:
        both = pa.concat_tables([state, rows.select(["user", "n"]).rename_columns(["user", "sum"])])
        totals = both.group_by("user").aggregate([("sum", "sum")]).select(["user", "sum_sum"]).rename_columns(["user", "sum"])
        return BucketResult(totals, totals.filter(pc.is_in(totals["user"], rows["user"])))


@pytest.mark.spark
@settings(deadline=None, max_examples=3)
@given(st.lists(ROWS.filter(bool), min_size=2, max_size=3))
def test_spark_does_what_the_model_does(spark: Any, epochs: list[list[dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keyed, whole = Stream(spark, Path(folder) / "keyed", SCHEMA), Stream(spark, Path(folder) / "whole", SCHEMA, delay=None)
        for rows in epochs:
            keyed.add([timed(row) for row in rows])
            whole.add([timed(row) for row in rows])
        out = [tuple(row.values()) for row in flat(keyed.run(Process(key_by="user", function=Sums, buckets=3)))]
        totals = {row["user"]: row["sum"] for row in flat(whole.run(Process(key_by="user", function=WholeSums, buckets=3)))}
    assert by_user(out) == by_user(model(epochs))
    everything = flat(epochs)
    assert totals == {user: sum(row["n"] for row in everything if row["user"] == user) for user in {row["user"] for row in everything}}
