"""Rows enriched from a database by key: Postgres, SQLite and DuckDB, with every way to treat what is missing."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tests.servers.postgres import Database

from millstream.errors import RunError, SpecError

pytestmark = pytest.mark.spark
PIPELINE = """
connections: {connections}
sources:
  orders:
    type: memory
    rows: [{{id: 1, user_id: 7}}, {{id: 2, user_id: 8}}, {{id: 3, user_id: null}}, {{id: 4, user_id: 7}}]
    schema: {{id: int64, user_id: int64}}
transforms:
  named: {{type: lookup, from: orders, {place}, on: {{user_id: id}}, select: [name, country]{more}}}
sinks:
  out: {{type: memory, from: named}}
"""
SETUP = (
    "CREATE TABLE {t} (id BIGINT PRIMARY KEY, name VARCHAR(20), country TEXT)",
    "INSERT INTO {t} VALUES (7, 'Ann', NULL), (9, 'Bob', 'DE')",
)


@pytest.fixture(params=["postgres", "sqlite", "duckdb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Connections, and the options of a lookup that finds user 7."""
    if request.param == "postgres":
        server: Database = request.getfixturevalue("postgres")
        schema = server.schema()
        server.run(*(text.format(t=f"{schema}.users") for text in SETUP))
        return f"{{postgres: {server.connection}}}", f"table: {schema}.users"
    connection = (sqlite3 if request.param == "sqlite" else duckdb).connect(str(tmp_path / "shop.db"))
    for text in SETUP:
        connection.execute(text.format(t="users"))
    connection.commit()
    connection.close()
    return "{}", f"backend: {request.param}, path: shop.db, table: users"


def _run(place: tuple[str, str], pipeline: Callable, run: Callable, more: str = "") -> tuple[list[dict], object]:
    letters = "  letters: {type: memory}\n" if "letters" in more else ""
    topology = pipeline(PIPELINE.format(connections=place[0], place=place[1], more=more) + letters)
    report = run(topology)
    return sorted(topology.node("out").component.rows(), key=lambda row: row["id"]), (report, topology)


def test_columns_are_added_and_hits_are_counted(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    rows, (report, _) = _run(place, pipeline, run, ", concurrency: 2, cache: {ttl: 5m}")
    assert rows == [
        {"id": 1, "user_id": 7, "name": "Ann", "country": None},
        {"id": 2, "user_id": 8, "name": None, "country": None},
        {"id": 3, "user_id": None, "name": None, "country": None},
        {"id": 4, "user_id": 7, "name": "Ann", "country": None},
    ]
    assert (report.nodes["named"].hits, report.nodes["named"].misses) == (2, 2)
    assert report.as_dict()["nodes"]["named"]["misses"] == 2


def test_rows_without_a_match_can_be_dropped(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    rows, (report, _) = _run(place, pipeline, run, ", on_missing: drop")
    assert [row["id"] for row in rows] == [1, 4]
    assert (report.nodes["named"].hits, report.nodes["named"].misses) == (2, 2)


def test_rows_without_a_match_can_go_to_a_sink(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    rows, (report, topology) = _run(place, pipeline, run, ", on_missing: {dead_letter: letters}")
    assert [row["id"] for row in rows] == [1, 4]
    letters = sorted(topology.node("letters").component.rows(), key=lambda row: row["raw"])
    assert [json.loads(letter["raw"]) for letter in letters] == [{"id": 2, "user_id": 8}, {"id": 3, "user_id": None}]
    assert "has no row with id = 8" in letters[0]["error"]
    assert (report.nodes["named"].hits, report.nodes["named"].misses) == (2, 2), "two sinks read the rows, and they count once"


def test_rows_without_a_match_can_stop_the_pipeline(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    with pytest.raises(RunError) as caught:
        _run(place, pipeline, run, ", on_missing: fail")
    (found,) = caught.value.diagnostics
    assert found.code == "MS139", found.message
    assert "has no row with id = 8" in found.message
    assert found.span is not None


def test_what_the_database_does_not_have_is_told(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    topology = pipeline(PIPELINE.format(connections=place[0], place=place[1], more="").replace("[name,", "[nam,"))
    with pytest.raises(RunError, match=r"MS135.*has no column `nam`") as caught:
        run(topology)
    assert caught.value.diagnostics[0].help == "did you mean `name`?"
    with pytest.raises(RunError, match=r"MS135.*there is no table"):
        run(pipeline(PIPELINE.format(connections=place[0], place=place[1].replace("users", "usrs"), more=""), name="q"))


def test_names_are_names_and_nothing_else(place: tuple[str, str], pipeline: Callable, run: Callable) -> None:
    evil = '"name; DROP TABLE users; --"'
    with pytest.raises(RunError, match="has no column"):
        run(pipeline(PIPELINE.format(connections=place[0], place=place[1], more="").replace("[name,", f"[{evil},"), name="q"))
    assert len(_run(place, pipeline, run)[0]) == 4, "the table is still there"


SEVERAL = """
sources:
  orders: {{type: memory, rows: [{{a: 1, b: x}}, {{a: 1, b: y}}, {{a: 2, b: null}}], schema: {{a: int64, b: string}}}}
transforms:
  found: {{type: lookup, from: orders, {place}, on: {{a: k, b: l}}, select: {{value: v}}}}
sinks: {{out: {{type: memory, from: found}}}}
connections: {connections}
"""


@pytest.mark.parametrize("backend", ["postgres", "sqlite", "duckdb"])
def test_a_key_of_several_columns(backend: str, request: pytest.FixtureRequest, pipeline: Callable, run: Callable, tmp_path: Path) -> None:
    texts = ("CREATE TABLE {t} (k BIGINT, l TEXT, v DOUBLE PRECISION)", "INSERT INTO {t} VALUES (1, 'y', 2.5), (2, 'x', 3)")
    connections, place = "{}", f"backend: {backend}, path: s.db, table: pairs"
    if backend == "postgres":
        server: Database = request.getfixturevalue("postgres")
        schema = server.schema()
        server.run(*(text.format(t=f"{schema}.pairs") for text in texts))
        connections, place = f"{{postgres: {server.connection}}}", f"table: {schema}.pairs"
    else:
        connection = (sqlite3 if backend == "sqlite" else duckdb).connect(str(tmp_path / "s.db"))
        for text in texts:
            connection.execute(text.format(t="pairs"))
        connection.commit()
        connection.close()
    topology = pipeline(SEVERAL.format(place=place, connections=connections))
    run(topology)
    assert sorted(row["value"] or 0 for row in topology.node("out").component.rows()) == [0, 0, 2.5]


def test_a_check_knows_the_columns_that_come_out(pipeline: Callable) -> None:
    text = PIPELINE.format(connections="{}", place="backend: sqlite, path: x.db, table: t", more="")
    with pytest.raises(SpecError, match=r"MS024.*`user_idd`"):
        pipeline(text.replace("on: {user_id: id}", "on: {user_idd: id}"))
    with pytest.raises(SpecError, match=r"MS134.*the rows already have a column `id`"):
        pipeline(text.replace("[name, country]", "[id]"))
