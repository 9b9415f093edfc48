"""What a process function remembers: values, lists and maps, by key, for as long as it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.transforms.streams import Bucket, main_rows

from millstream import ListState, MapState, ProcessFunction, ValueState
from millstream.worker.state_layout import StateLayoutError

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def row(user: str, n: int, minute: float = 0) -> dict[str, Any]:
    return {"user": user, "n": n, "at": T0 + timedelta(minutes=minute)}


class Remembers(ProcessFunction):
    output = {"user": "string", "total": "int64", "seen": "list<int64>", "by_parity": "string"}
    state = {"total": ValueState("int64"), "seen": ListState("int64"), "parity": MapState("int64", key="string")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        for n in rows["n"].to_pylist():
            state["total"].set(state["total"].get(0) + n)
            state["seen"].append(n)
            parity = "even" if n % 2 == 0 else "odd"
            state["parity"][parity] = state["parity"].get(parity, 0) + 1
        yield {
            "user": key,
            "total": state["total"].get(),
            "seen": state["seen"].get(),
            "by_parity": str(sorted(state["parity"].items())),
        }


def test_values_lists_and_maps_are_there_in_the_next_epoch_and_are_each_key_s_own() -> None:
    bucket = Bucket(Remembers, SCHEMA)
    bucket.epoch([row("a", 1), row("b", 10)])
    bucket.epoch([row("c", 7)])
    (again,) = main_rows(bucket.epoch([row("a", 2), row("a", 3)]))
    assert again == {"user": "a", "total": 6, "seen": [1, 2, 3], "by_parity": "[('even', 1), ('odd', 2)]"}
    assert {stored["key.user"]: stored["total"] for stored in bucket.stored} == {"a": 6, "b": 10, "c": 7}


def test_rows_of_a_key_come_in_the_order_of_event_time() -> None:
    bucket = Bucket(Remembers, SCHEMA)
    (out,) = main_rows(bucket.epoch([row("a", 3, 9), row("a", 1, 1), row("a", 2, 5)]))
    assert out["seen"] == [1, 2, 3]


class Forgets(ProcessFunction):
    output = {"user": "string", "left": "string"}
    state = {"one": ValueState("int64", ttl="10m"), "many": ListState("int64", ttl="10m"), "named": MapState("int64", ttl="10m")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        left = f"{state['one'].get()} {state['many'].get()} {state['named'].items()}"
        for n in rows["n"].to_pylist():
            if n:
                state["one"].set(n)
                state["many"].append(n)
                state["named"].set(str(n), n)
        yield {"user": key, "left": left}


def test_what_is_older_than_its_time_to_live_is_gone() -> None:
    bucket = Bucket(Forgets, SCHEMA)
    bucket.epoch([row("a", 1)], now=T0)
    (soon,) = main_rows(bucket.epoch([row("a", 2)], now=T0 + timedelta(minutes=6)))
    assert soon["left"] == "1 [1] [('1', 1)]"
    (later,) = main_rows(bucket.epoch([row("a", 0)], now=T0 + timedelta(minutes=12)))
    assert later["left"] == "2 [2] [('2', 2)]"
    (last,) = main_rows(bucket.epoch([row("a", 0)], now=T0 + timedelta(minutes=16)))
    assert last["left"] == "None [] []"
    assert bucket.stored == []


def test_a_key_that_nobody_asks_for_leaves_with_its_time_to_live_too() -> None:
    bucket = Bucket(Forgets, SCHEMA)
    bucket.epoch([row("a", 1)], now=T0)
    bucket.epoch([row("b", 1)], now=T0 + timedelta(minutes=5))
    assert [stored["key.user"] for stored in bucket.stored] == ["a", "b"]
    bucket.epoch([row("c", 0)], now=T0 + timedelta(minutes=11))
    assert [stored["key.user"] for stored in bucket.stored] == ["b"]


class Clears(ProcessFunction):
    output = {"user": "string"}
    state = {"total": ValueState("int64"), "seen": ListState("int64"), "named": MapState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        state["total"].set(1)
        state["seen"].set([1, 2])
        state["named"]["x"] = 1
        if rows["n"][0].as_py() == 0:
            state["total"].clear()
            state["seen"].clear()
            state["named"].remove("x")


def test_a_key_with_nothing_to_remember_takes_no_room() -> None:
    bucket = Bucket(Clears, SCHEMA)
    bucket.epoch([row("a", 1), row("b", 1)])
    bucket.epoch([row("a", 0)])
    assert [stored["key.user"] for stored in bucket.stored] == ["b"]


def test_keys_of_several_columns_and_types_are_told_apart() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("n", pa.decimal128(5, 2))])

    class Counts(ProcessFunction):
        output = {"key": "string", "n": "int64"}
        state = {"n": ValueState("int64")}

        def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
            state["n"].set(state["n"].get(0) + rows.num_rows)
            return {"key": str(key), "n": state["n"].get()}

    bucket = Bucket(Counts, schema, keys=("a", "b", "n"))
    rows = [{"a": a, "b": b, "at": T0, "n": 1} for a in ("x", "y", "") for b in (0, 1, 2**62)]
    bucket.epoch(rows)
    out = main_rows(bucket.epoch(rows[::-1]))
    assert len({row["key"] for row in out}) == 9
    assert {row["n"] for row in out} == {2}
    assert "('y', 1, Decimal('1.00'))" in {row["key"] for row in out}


class More(Remembers):
    state = {**Remembers.state, "last": ValueState("string")}


class Other(Remembers):
    state = {**Remembers.state, "total": ValueState("string")}


class Fewer(Remembers):
    state = {"total": ValueState("int64"), "seen": ListState("int64")}


def test_a_state_may_be_added() -> None:
    bucket, more = Bucket(Remembers, SCHEMA), Bucket(More, SCHEMA)
    bucket.epoch([row("a", 1)])
    more.blob = bucket.blob
    assert main_rows(more.epoch([row("a", 1)]))[0]["total"] == 2


@pytest.mark.parametrize(("changed", "sentence"), [(Other, "state `total` is stored as int64"), (Fewer, "a state `parity`")])
def test_a_state_that_changed_or_is_gone_is_refused(changed: type, sentence: str) -> None:
    bucket, now = Bucket(Remembers, SCHEMA), Bucket(changed, SCHEMA)
    bucket.epoch([row("a", 1)])
    now.blob = bucket.blob
    with pytest.raises(StateLayoutError, match=sentence):
        now.epoch([row("a", 1)])
