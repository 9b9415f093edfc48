"""Every type of column comes back as it was put, from every backend."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.servers.postgres import Database

from millstream.lookups.backends.memory import TableServer
from millstream.lookups.table import TableSpec, open_store
from millstream.plan import types

VALUES = {
    "bool": True,
    "int8": -7,
    "int16": 300,
    "int32": 70000,
    "int64": 2**60,
    "float32": 0.5,
    "float64": 1e300,
    "string": "ä ' \" \\ ; \n",
    "binary": b"\x00\xff",
    "date": date(2026, 2, 28),
    "timestamp": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    "timestamp_ntz": datetime(2026, 1, 2, 3, 4, 5, 678901),
    "decimal(18,2)": Decimal("-12.30"),
}
NAMES = {f"c{index}": kind for index, kind in enumerate(VALUES)}


@pytest.fixture(scope="module")
def home() -> TableServer:
    return TableServer()


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def spec(request: pytest.FixtureRequest, tmp_path: Path, home: TableServer) -> TableSpec:
    kinds = {name: types.parse(kind) for name, kind in NAMES.items()} | {"k": pa.string()}
    base = TableSpec("t", request.param, "t", ("k",), tuple(NAMES), kinds, time_column="at", place=str(tmp_path / "t.db"))
    if request.param == "memory":
        return replace(base, place=home.place, secret=home.secret)
    if request.param == "postgres":
        server: Database = request.getfixturevalue("postgres")
        return replace(base, namespace=server.schema(), address=server.address)
    if request.param == "redis":
        return replace(base, place=request.getfixturevalue("redis").url, table=request.getfixturevalue("redis").name())
    return base


def test_values_come_back_as_they_were(spec: TableSpec) -> None:
    schema = pa.schema([pa.field(name, spec.types[name]) for name in spec.names])
    rows = pa.Table.from_pylist([{"k": "full", **dict(zip(NAMES, VALUES.values(), strict=True))}, {"k": "empty"}], schema=schema)
    store = open_store(spec)
    assert store.ensure() == schema
    store.put(rows)
    found = store.get(pa.table({"k": ["full", "empty", "none"]}))
    assert found.schema == schema
    assert sorted(found.to_pylist(), key=lambda row: row["k"]) == sorted(rows.to_pylist(), key=lambda row: row["k"])


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "string", "date"])
def test_every_type_of_key(spec: TableSpec, kind: str) -> None:
    key = pa.array([VALUES[kind]], types.parse(kind))
    store = open_store(replace(spec, table=f"{spec.table}_{kind}", columns=(), types={"k": types.parse(kind)}, name=f"t_{kind}"))
    store.ensure()
    store.put(pa.table({"k": key}))
    assert store.get(pa.table({"k": key}))["k"].combine_chunks() == key
    assert store.delete(pa.table({"k": key})) == 1
