"""`dedup` over rows that change keeps what a plain program over the sorted rows keeps. Natively, the rows of windows would be lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.stateful.conftest import at

from millstream.connectors.memory.sink import MemorySink
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
WITHIN = 10
Row = tuple[int, str, int | None, int]
"""Id, key, value, second."""
CHANGES: list[tuple[str, Row]] = [
    ("i", (1, "a", 5, 20)),
    ("i", (2, "a", 7, 25)),
    ("i", (3, "a", 9, 31)),
    ("i", (4, "b", None, 20)),
    ("i", (5, "b", 3, 20)),
    ("d", (1, "a", 5, 20)),  # the next row takes its place, and 3 is no longer kept
    ("u", (5, "c", 3, 20)),  # moves to another key
    ("i", (6, "a", 1, 10)),  # comes before all others
    ("u", (2, "a", 7, 45)),
]


def oracle(rows: Iterable[Row]) -> set[Row]:
    kept: set[Row] = set()
    last: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row[3], row[0])):
        if row[3] >= last.get(row[1], -WITHIN) + WITHIN:
            last[row[1]] = row[3]
            kept.add(row)
    return kept


def source(changes: list[tuple[str, Row]]) -> str:
    texts = [
        f"{{id: {i}, k: {k}, v: {'null' if v is None else v}, at: '2024-01-01T00:00:{s:02}Z', _op: {op}}}" for op, (i, k, v, s) in changes
    ]
    schema = "schema: {id: int64, k: string, v: int64, at: timestamp, _op: string}"
    return f"type: memory, rows: [{', '.join(texts)}], rows_per_epoch: {max(1, len(changes) // 9)}, {schema}, primary_key: id"


def rows_of(topology: Topology) -> list[dict[str, Any]]:
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    return list(sink.rows())


def tables(rows: list[dict[str, Any]]) -> set[Row]:
    """What the changes leave; a row that is not there cannot be removed."""
    found: Counter[Row] = Counter()
    for row in rows:
        found[row["id"], row["k"], row["v"], row["at"].second] += {"i": 1, "d": -1}[row["_op"]]
        assert min(found.values()) >= 0
    return set((+found).elements())


def changed(count: int) -> list[tuple[str, Row]]:
    chance, here = random.Random(3), dict[int, Row]()
    found = []
    for number in range(count):
        old = chance.choice(list(here)) if here and chance.random() < 0.5 else None
        row = (old if old is not None else number, chance.choice("ab"), chance.randrange(9), chance.randrange(60))
        op = "i" if old is None else chance.choice("ud")
        here = {**here, row[0]: row} if op != "d" else {key: value for key, value in here.items() if key != row[0]}
        found.append((op, row))
    return found


@pytest.mark.parametrize("changes", [CHANGES, changed(27)], ids=["by hand", "at random"])
def test_it_keeps_what_a_program_over_the_sorted_rows_keeps(
    changes: list[tuple[str, Row]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(f"""
        sources: {{t: {{{source(changes)}, event_time: {{column: at}}}}}}
        transforms: {{once: {{type: dedup, from: t, key: [k], within: {WITHIN}s}}}}
        sinks: {{out: {{type: memory, from: once}}}}
    """)
    run(topology)
    table: dict[int, Row] = {}
    for op, row in changes:
        table.pop(row[0], None)
        table |= {row[0]: row} if op != "d" else {}
    assert tables(rows_of(topology)) == oracle(table.values())


def test_over_a_query_that_is_kept_up_to_date(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline(f"""
        sources: {{t: {{{source(CHANGES)}}}}}
        transforms:
          large: {{type: sql, sql: "SELECT * FROM t WHERE v > (SELECT min(v) FROM t)", event_time: {{column: at}}, primary_key: id}}
          once: {{type: dedup, from: large, key: [k], within: {WITHIN}s, primary_key: [k, at]}}
        sinks: {{out: {{type: memory, from: once}}}}
    """)
    run(topology)
    kept = {row["id"]: row["_op"] for row in rows_of(topology)}
    assert {number for number, op in kept.items() if op != "d"} == {2, 3, 5}


WINDOWS = """
    sources:
      t:
        type: memory
        rows: [{k: a, at: '2024-01-01T00:00:01Z'}, {k: a, at: '2024-01-01T00:00:12Z'}, {k: b, at: '2024-01-01T00:01:00Z'}]
        schema: {k: string, at: timestamp}
        rows_per_epoch: 1
        event_time: {column: at}
    transforms:
      w:
        type: window
        from: t
        key_by: [k]
        window: {type: tumbling, size: 10s}
        aggregate: {n: count(*)}
        event_time: {column: window_end}
      once: {type: dedup, from: w, key: [k], within: 1h}
    sinks: {out: {type: memory, from: once}}
"""


def test_over_windows(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline(WINDOWS)
    run(topology)
    assert {(row["k"], row["window_end"], row["_op"]) for row in rows_of(topology)} == {("a", at(10), "i"), ("b", at(70), "i")}
