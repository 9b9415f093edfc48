"""What can be wrong with slots, publications and tables is said in one sentence with a code."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from tests.connectors.postgres_source.follower import Follower, code, ops
from tests.servers.postgres import Database

from millstream.dev.postgres import start_postgres
from millstream.errors import RunError

Follow = Callable[..., Follower]


def refused(follower: Follower, expected: str) -> str:
    with pytest.raises(RunError) as raised:
        follower.epoch()
    assert code(raised) == expected
    return str(raised.value)


def test_a_slot_that_is_gone(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"SELECT pg_drop_replication_slot('{follower.slot}')")
    assert "was dropped" in refused(follower, "MS122")
    assert "was dropped" in refused(follow(table, after=follower), "MS122")  # a restart does not make it anew


def test_a_publication_that_is_gone_or_lost_the_table(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"CREATE TABLE {table}2 (id int PRIMARY KEY)", f"ALTER PUBLICATION {follower.slot} SET TABLE {table}2")
    assert f"does not publish table `{table}`" in refused(follower, "MS123")
    postgres.run(f"DROP PUBLICATION {follower.slot}")
    assert "was dropped" in refused(follower, "MS123")


def test_a_table_that_is_gone(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"DROP TABLE {table}")
    refused(follower, "MS123")
    assert "there is no table" in refused(follow(table, after=follower), "MS120")


def test_tables_without_an_identity_are_refused_before_anything_is_made(postgres: Database, follow: Follow) -> None:
    name = f"{postgres.schema()}.t"
    postgres.run(f"CREATE TABLE {name} (id int NOT NULL, a text)", f"CREATE VIEW {name}view AS SELECT * FROM {name}")
    follower = follow(name)
    assert "no primary key" in refused(follower, "MS124")
    assert postgres.rows(f"SELECT count(*) FROM pg_publication WHERE pubname = '{follower.slot}'") == [(0,)]
    refused(follow(f"{name}view"), "MS120")
    postgres.run(f"CREATE UNIQUE INDEX byid ON {name} (id)", f"ALTER TABLE {name} REPLICA IDENTITY USING INDEX byid")
    good = follow(name)
    good.epoch()
    postgres.run(f"INSERT INTO {name} VALUES (1, 'a')", f"DELETE FROM {name}")
    assert ops(good.epoch()) == [("i", 1, "a"), ("d", 1, None)] and good.source.open(good.context).key_columns() == ("id",)


def test_nothing_is_made_when_that_is_forbidden(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table, create=False)
    assert f'CREATE PUBLICATION "{follower.slot}"' in refused(follower, "MS121")
    postgres.run(f"CREATE PUBLICATION {follower.slot} FOR TABLE {table}")
    assert "pg_create_logical_replication_slot" in refused(follower, "MS121")
    postgres.run(f"SELECT pg_create_logical_replication_slot('{follower.slot}', 'pgoutput')")
    assert follower.epoch() == []


def test_a_slot_of_another_plugin_is_not_taken(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    try:
        postgres.run(f"SELECT pg_create_logical_replication_slot('{follower.slot}', 'test_decoding')")
    except psycopg.Error:
        pytest.skip("this server has no other plugin")
    refused(follower, "MS122")


def test_a_user_who_may_not(postgres: Database, table: str, follow: Follow) -> None:
    role = f"r{table[1:9]}"
    postgres.run(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    login = {"user": role, "password": "x"}
    assert "cannot be read" in refused(follow(table, source=login), "MS120")
    schema = table.partition(".")[0]
    postgres.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}", f"GRANT SELECT ON {table} TO {role}")
    assert "publication" in refused(follow(table, source=login), "MS121")
    follower = follow(table, source=login)
    postgres.run(f"CREATE PUBLICATION {follower.slot} FOR TABLE {table}")
    assert "slot" in refused(follower, "MS121")
    postgres.run(f"SELECT pg_create_logical_replication_slot('{follower.slot}', 'pgoutput')")
    assert "may not read a replication slot" in refused(follower, "MS121")
    postgres.run(f"ALTER ROLE {role} REPLICATION")
    assert follower.epoch() == []


@pytest.mark.server
def test_a_server_that_writes_too_little() -> None:
    with start_postgres(settings=("wal_level=replica",)) as server:
        with psycopg.connect(server.address.text, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        follower = Follower(Database(server), "t", server.data.parent)
        assert "wal_level" in refused(follower, "MS121")


@pytest.mark.server
def test_a_slot_that_the_server_gave_up() -> None:
    """It held back more of the log than the server keeps for it."""
    with start_postgres(settings=("max_slot_wal_keep_size=1MB", "min_wal_size=32MB", "max_wal_size=32MB")) as server:
        database = Database(server)
        database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
        follower = Follower(database, "t", server.data.parent)
        follower.epoch()
        for _ in range(4):
            database.run(
                "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 50000) g", "DELETE FROM t", "SELECT pg_switch_wal()", "CHECKPOINT"
            )
        assert "invalidated" in refused(follower, "MS122")


def test_new_and_lost_columns_stop_the_source_and_nothing_is_lost(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')", f"ALTER TABLE {table} ADD COLUMN more int")
    assert ops(follower.epoch()) == [("i", 1, "a")]  # only a row that is affected stops it
    postgres.run(f"INSERT INTO {table} VALUES (2, 'b', 7)")
    assert "has the new column `more`" in refused(follower, "MS126")
    assert "has the new column `more`" in refused(follow(table, after=follower, source={"types": {}}), "MS126")
    lenient = follow(table, after=follower, on_schema_change="ignore")
    lenient.schema = follower.schema
    assert ops(lenient.epoch()) == [("i", 2, "b")]
    postgres.run(f"ALTER TABLE {table} DROP COLUMN name", f"INSERT INTO {table} VALUES (3, 8)")
    after = follow(table, after=lenient, on_schema_change="ignore")
    after.schema = follower.schema
    assert ops(after.epoch()) == [("i", 3, None)]
    strict = follow(table, after=after)
    strict.schema = follower.schema
    assert "has no column `name` any more" in refused(strict, "MS126")


def test_a_lost_column_is_named(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"ALTER TABLE {table} DROP COLUMN name", f"INSERT INTO {table} VALUES (1)")
    assert "has lost the column `name`" in refused(follower, "MS126")


def test_another_type_is_named(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"ALTER TABLE {table} ALTER COLUMN name TYPE int USING 0", f"INSERT INTO {table} VALUES (1, 2)")
    assert "has another type for the column `name`" in refused(follower, "MS126")


def test_chosen_columns_need_not_care_about_new_ones(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table, source={"columns": "id"})
    follower.epoch()
    postgres.run(f"ALTER TABLE {table} ADD COLUMN more int", f"INSERT INTO {table} VALUES (2, 'b', 7)")
    assert ops(follower.epoch()) == [("i", 2)]
