"""With a `ttl` the result is that of the rows that arrived within it: what expires is removed like any other change."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper, Rows
from tests.warm import Done

from millstream.engine.incremental.arrivals import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS_TTL, USERS_TTL = 10, 20
SQL = "SELECT u.id, u.name, count(o.v) AS n, sum(o.v) AS s FROM u LEFT JOIN o ON o.id = u.id GROUP BY u.id, u.name"
Epoch = tuple[int, Rows, Rows]
EPOCHS: list[Epoch] = [
    (0, [(1, 5), (1, 5), (2, 7)], [(1, "ada", "i"), (2, "bob", "i"), (3, "cy", "i")]),
    (6, [(1, 1)], [(2, "bo", "u")]),
    (10, [(2, 3)], []),  # the first orders expire, and an equal one has not
    (11, [], [(3, None, "d")]),
    (20, [(1, 9)], [(1, "ada", "u")]),  # the change of `ada` has no effect but that she stays
    (26, [], []),  # `bo` expires without a new row
    (27, [(2, 1)], [(2, "bob", "i")]),
    (100, [], [(1, "eve", "u")]),  # `ada` expires in the epoch that changes her
]


def feeds() -> dict[str, Feed]:
    from pyspark.sql.types import _parse_datatype_string as schema

    orders: Any = schema("id int, v bigint")
    users: Any = schema("id int, name string, _op string")
    return {"o": Feed(orders, ttl_ms=ORDERS_TTL), "u": Feed(users, ("id",), ttl_ms=USERS_TTL)}


def expected(until: int) -> Counter[tuple[Any, ...]]:
    """The batch answer over the rows that have not expired at an epoch."""
    now, users = EPOCHS[until][0], {}
    for at, _, changes in EPOCHS[: until + 1]:
        for id_, name, op in changes:
            users[id_] = None if op == "d" else (name, at)
    orders = [row for at, rows, _ in EPOCHS[: until + 1] if at + ORDERS_TTL > now for row in rows]
    alive = {id_: kept[0] for id_, kept in users.items() if kept is not None and kept[1] + USERS_TTL > now}
    values = {id_: [v for key, v in orders if key == id_] for id_ in alive}
    return Counter((id_, name, len(values[id_]), sum(values[id_]) if values[id_] else None) for id_, name in alive.items())


def step(keeper: Keeper, epoch: int, *, finish: bool = True, frozen: bool = False) -> None:
    time_ms, orders, users = EPOCHS[epoch]
    keeper.apply(keeper.step(epoch, finish=finish, time_ms=0 if frozen else time_ms, o=orders, u=users))


@pytest.mark.spark
def test_the_result_is_that_of_the_rows_that_have_not_expired(spark: SparkSession, tmp_path: Path) -> None:
    """With a restart, and an epoch that a restart repeats at another time."""
    keeper = Keeper(spark, SQL, tmp_path, feeds=feeds())
    for epoch in range(len(EPOCHS)):
        step(keeper, epoch, finish=epoch != 4)
        assert keeper.result == expected(epoch), epoch
        if epoch == 4:
            old, keeper = keeper.result, Keeper(spark, SQL, tmp_path, partitions=3, feeds=feeds())
            keeper.result = old
            again = keeper.step(4, time_ms=10**6, o=EPOCHS[4][1], u=EPOCHS[4][2])
            assert Counter(again) == Counter([(1, "ada", 1, 9, "u"), (2, "bo", 0, None, "u")])
    stored = keeper.kept.facts(len(EPOCHS) - 1).operators
    assert [each.rows for each in stored if each.kind in {"input", "table"}] == [1, 0]  # `eve` alone


@pytest.mark.spark
def test_without_the_time_nothing_expires(spark: SparkSession, tmp_path: Path) -> None:
    """The control of the test before."""
    keeper = Keeper(spark, SQL, tmp_path, feeds=feeds())
    for epoch in range(3):
        step(keeper, epoch, frozen=True)
    assert keeper.result != expected(2)


PIPELINE = """
name: p
sources:
  t: {type: memory, rows: [{k: a, v: 1}, {k: b, v: 2}, {k: a, v: 3}], rows_per_epoch: 1}
transforms:
  recent: {type: aggregate, from: t, key_by: [k], aggregate: {s: sum(v)}, ttl: 1ms}
  all: {type: sql, sql: "SELECT k, count(*) AS n FROM t GROUP BY k"}
  both: {type: sql, sql: "SELECT k, s, n FROM recent RIGHT JOIN all USING (k)"}
sinks:
  out: {type: print, from: both}
"""


@pytest.mark.spark
def test_one_input_can_be_read_with_and_without_a_ttl(warm: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    ran = warm("run", "p.yaml", "--quiet")
    assert ran.returncode == 0, ran.stderr
    changes = [json.loads(line) for line in ran.stdout.splitlines()]
    found = Counter((each["k"], each.get("s"), each["n"]) for each in changes if each["_op"] != "d")
    assert found == Counter([("a", 1, 1), ("a", None, 1), ("b", 2, 1), ("b", None, 1), ("a", 3, 2)])


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ('q: {type: sql, ttl: 1d, sql: "SELECT k FROM t"}', "MS006.*`q` is not incremental"),
        (
            'a: {type: sql, sql: "SELECT DISTINCT k FROM t"}\n  q: {type: sql, ttl: 1d, sql: "SELECT count(*) AS n FROM a"}',
            "MS030.*set `ttl` on `a`",
        ),
        ('q: {type: sql, ttl: soon, sql: "SELECT DISTINCT k FROM t"}', "MS009.*`soon`"),
    ],
)
def test_a_ttl_where_nothing_expires_is_refused(nodes: str, found: str, warm: Callable[..., Done], tmp_path: Path) -> None:
    head = "name: p\nsources: {t: {type: memory, rows: [{k: a}]}}\ntransforms:\n  "
    (tmp_path / "p.yaml").write_text(f"{head}{nodes}\nsinks: {{out: {{type: print, from: q}}}}\n")
    checked = warm("check", "p.yaml")
    assert checked.returncode != 0 and re.search(found, (checked.stdout + checked.stderr).replace("\n", " ")), checked.stderr
