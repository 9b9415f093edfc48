"""Joins give what a batch join gives, whatever the epochs: in time, by window, and with a table."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.stateful.conftest import at

from millstream import DataStream, MemorySource, StreamEnvironment, TumblingWindow

pytestmark = pytest.mark.spark
ORDERS = [{"id": i, "amount": i * 10, "at": at(i * 10)} for i in range(6)]
PAYMENTS = [{"id": i, "paid": True, "at": at(i * 10 + delay)} for i, delay in ((0, 5), (1, 70), (2, -5), (9, 0), (4, 59))]


def rows(stream: DataStream, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[column] for column in columns) for row in stream.collect().to_pylist()), key=str)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", {(0, True), (4, True)}),
        ("left", {(0, True), (1, None), (2, None), (3, None), (4, True), (5, None)}),
        ("right", {(0, True), (1, True), (2, True), (9, True), (4, True)}),
        ("full", {(0, True), (1, None), (1, True), (2, None), (2, True), (3, None), (4, True), (5, None), (9, True)}),
    ],
)
def test_rows_that_match_within_the_bound_come_together(
    timed: Callable[..., DataStream], kind: Any, expected: set[tuple[Any, ...]]
) -> None:
    orders, payments = timed("orders", ORDERS), timed("payments", PAYMENTS, size=1)
    joined = orders.join(payments, on="left.id = right.id", within={"before": "0s", "after": "1m"}, kind=kind)
    assert set(rows(joined, "id", "paid")) == expected


def test_columns_that_both_sides_have_are_told_apart(timed: Callable[..., DataStream]) -> None:
    joined = timed("orders", ORDERS).join(timed("payments", PAYMENTS), on=["id"], within={"after": "1m"})
    assert joined.collect().column_names == ["id", "amount", "at", "paid", "right_at"]


@pytest.mark.parametrize("kind", ["inner", "left", "full"])
def test_several_streams_are_joined_by_key_and_window(timed: Callable[..., DataStream], kind: Any) -> None:
    a = timed("a", [{"k": 1, "x": "a1", "at": at(1)}, {"k": 1, "x": "a2", "at": at(50)}, {"k": 2, "x": "a3", "at": at(70)}])
    b = timed("b", [{"k": 1, "y": "b1", "at": at(59)}, {"k": 2, "y": "b2", "at": at(130)}])
    c = timed("c", [{"k": 1, "z": "c1", "at": at(2)}, {"k": 1, "z": "c2", "at": at(3)}, {"k": 2, "z": "c3", "at": at(61)}], size=1)
    joined = a.join_window(b, c, on=["k"], window=TumblingWindow.of("1m"), kind=kind)
    both = {(1, x, "b1", z) for x in ("a1", "a2") for z in ("c1", "c2")}
    lonely = {"inner": set(), "left": {(2, "a3", None, "c3")}, "full": {(2, "a3", None, "c3"), (2, None, "b2", None)}}[kind]
    assert set(rows(joined, "k", "x", "y", "z")) == both | lonely


def test_a_table_is_looked_up(env: StreamEnvironment) -> None:
    names = MemorySource(rows=({"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}))
    orders = env.from_rows([{"order": 10, "id": 1}, {"order": 11, "id": 3}])
    assert rows(orders.join_table(names, on=["id"], kind="left"), "order", "name") == [(10, "ann"), (11, None)]


def test_a_table_is_read_again_when_it_is_too_old(pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Any) -> None:
    table, orders = tmp_path / "names.csv", tmp_path / "orders"
    orders.mkdir()
    for number in range(3):
        path = orders / f"{number}.json"
        path.write_text(f'{{"order": {number}, "id": 1}}\n')
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    table.write_text("id,name\n1,0\n")
    (tmp_path / "steps.py").write_text(
        "def rename(batch):\n"
        "    from pathlib import Path\n"
        f"    path = Path({str(table)!r})\n"
        "    if batch.num_rows:\n"
        "        path.write_text(f'id,name\\n1,{batch[\"order\"][0].as_py()}\\n')\n"
        "    return batch\n"
    )
    text = """
        sources:
          orders:
            type: file
            path: orders
            format: json
            schema: {order: int64, id: int64}
            mode: {type: bounded}
            max_files_per_epoch: 1
        transforms:
          named:
            type: join
            left: orders
            table: {type: file, path: names.csv, format: csv, schema: {id: int64, name: string}}
            on: [id]
            refresh: REFRESH
          seen: {type: python, from: named, function: steps.py:rename, schema: {order: int64, id: int64, name: string}}
        sinks: {out: {type: memory, from: seen}}
    """
    for refresh, expected in (("1h", ["0", "0", "0"]), ("1ms", ["0", "0", "1"])):
        topology = pipeline(text.replace("REFRESH", refresh), f"p{refresh}")
        table.write_text("id,name\n1,0\n")
        run(topology)
        assert topology.node("out").component.table().sort_by("order")["name"].to_pylist() == expected
