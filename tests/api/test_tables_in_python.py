"""Dynamic tables and lookups from Python say what YAML says."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import millstream
from millstream.plan.document import from_yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_table_and_a_lookup(spark: "SparkSession", tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO users VALUES (7, 'Ann')")
    env = millstream.StreamEnvironment("shop", spark=spark)
    orders = env.from_rows([{"id": 1, "user": 7}, {"id": 2, "user": 8}], {"id": "int64", "user": "int64"}, name="orders")
    env.dynamic_table("big", backend="memory", key="id", key_type="int64", sql="SELECT id FROM orders WHERE id > 1")
    marked = orders.sql("SELECT id, user, dynamic_table_check('big', id) AS big FROM orders", name="marked")
    named = marked.lookup("users", backend="sqlite", path=str(tmp_path / "shop.db"), on={"user": "id"}, select=["name"], name="named")
    assert sorted(named.collect().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "user": 7, "big": False, "name": "Ann"},
        {"id": 2, "user": 8, "big": True, "name": None},
    ]
    again = from_yaml(env.topology().to_yaml())
    assert [(node.name, node.inputs) for node in again.nodes] == [(node.name, node.inputs) for node in env.topology().nodes]
