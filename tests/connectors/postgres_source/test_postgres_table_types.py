"""Every type is read, its Arrow type found, and pinned."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import Database

pytestmark = pytest.mark.spark

TABLE = """
    CREATE TABLE {}.t (id int PRIMARY KEY, small smallint, big bigint, price numeric(10,2), free numeric, single real, double float8,
    word text, short varchar(5), fixed char(3), raw bytea, day date, clock time, at timestamp, moment timestamptz, span interval,
    ident uuid, doc json, docb jsonb, numbers int[], words text[], yes bool, mood {}.mood, adult {}.adult, "select" int, "a""b" int)
"""
ROWS = r"""
    INSERT INTO {}.t VALUES
    (1, 1, 2, 3.50, 1e30, 1.5, 'NaN', 'héllo', 'ab', 'x', '\x00ff', '2026-01-02', '12:30:00.5', '2026-01-02 03:04:05.000006',
     '2026-01-02 03:04:05+02', '1 day 02:00', '00000000-0000-0000-0000-000000000001', '{{"a": 1}}', '{{"b": [1]}}', '{{1,NULL,3}}',
     '{{"a b","q\"\\",NULL,"NULL",""}}', true, 'glad', 21, 7, 8),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL),
    (3, -1, -2, -3.5, 0, 0, '-Infinity', '', '', '', '', 'infinity', '24:00', '-infinity', 'infinity', '-1 mon', NULL, 'null', '{{}}',
     '{{}}', '{{}}', false, 'sad', 18, 0, 0)
"""
EXPECTED: dict[str, Any] = {
    "id": 1, "small": 1, "big": 2, "price": Decimal("3.50"), "free": "1" + "0" * 30, "single": 1.5, "word": "héllo", "short": "ab",
    "fixed": "x  ", "raw": b"\x00\xff", "day": dt.date(2026, 1, 2), "clock": "12:30:00.5", "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6),
    "moment": dt.datetime(2026, 1, 2, 1, 4, 5), "span": "1 day 02:00:00",
    "ident": "00000000-0000-0000-0000-000000000001", "doc": '{"a": 1}', "docb": '{"b": [1]}', "numbers": [1, None, 3],
    "words": ["a b", 'q"\\', None, "NULL", ""], "yes": True, "mood": "glad", "adult": 21, "select": 7, 'a"b': 8,
}  # fmt: skip
PINNED = {
    "id": "int32", "small": "int16", "big": "int64", "price": "decimal(10,2)", "free": "string", "single": "float32", "double": "float64",
    "raw": "binary", "day": "date", "at": "timestamp_ntz", "moment": "timestamp", "numbers": "list<int32>", "words": "list<string>",
    "yes": "bool", "adult": "int32",
}  # fmt: skip


def make(postgres: Database) -> str:
    """A table with one column of every type, in a schema of its own."""
    name = postgres.schema()
    postgres.run(f"CREATE TYPE {name}.mood AS ENUM ('glad', 'sad')", f"CREATE DOMAIN {name}.adult AS int CHECK (VALUE >= 18)")
    postgres.run(TABLE.format(name, name, name))
    return name


def check(rows: list[dict[str, Any]]) -> None:
    first, empty, edge = sorted(rows, key=lambda row: row["id"])
    assert math.isnan(first.pop("double")) and {name: first[name] for name in EXPECTED} == EXPECTED
    assert {value for name, value in empty.items() if name not in {"id", "_op", "_seq"}} == {None}
    assert edge["double"] == -math.inf and edge["day"] == dt.date(9999, 12, 31) and edge["raw"] == b"" and edge["numbers"] == []
    assert (edge["at"], edge["moment"].year, edge["clock"]) == (dt.datetime(1, 1, 1), 9999, "24:00:00")


def test_every_type_is_read_from_the_table(postgres: Database, read: Callable[..., Any], tmp_path: Path) -> None:
    name = make(postgres)
    postgres.run(ROWS.format(name))
    check(read(f"{name}.t"))
    pinned = json.loads(next(tmp_path.rglob("nodes/t/schema.json")).read_text())
    assert {column: pinned[column] for column in PINNED} == PINNED
    assert {pinned[column] for column in pinned if column not in PINNED} == {"string", "int32"}
