"""What Postgres does not take: one clear message with the row's key, nothing half-committed; or a dead letter for each such row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import Database

from millstream.errors import Diagnostic, MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

EVIL = 'x"; DROP TABLE victims; --'


def failure(write: Callable[..., Any], *args: Any, **more: Any) -> Diagnostic:
    with pytest.raises(MillstreamError) as caught:
        write(*args, **more)
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("table", "columns", "bad", "said"),
    [
        ("v varchar(3)", "v: string", {"v": "toolong"}, "value too long for type character varying(3)"),
        ("v integer", "v: int64", {"v": 3_000_000_000}, "integer out of range"),
        ("v numeric(4, 2)", "v: float64", {"v": 1e9}, "numeric field overflow"),
        ("v text", "v: string", {"v": "a\0b"}, "invalid byte sequence"),
        ("v uuid", "v: string", {"v": "no-uuid"}, "invalid input syntax for type uuid"),
        ("v timestamp", "v: string", {"v": "294277-01-01"}, "timestamp out of range"),
        ("v text CHECK (v <> 'no')", "v: string", {"v": "no"}, "violates check constraint"),
        ("v bigint REFERENCES {schema}.other (id)", "v: int64", {"v": 7}, "violates foreign key constraint"),
    ],
)
def test_the_row_is_named_and_nothing_is_written(
    postgres: Database, write: Callable[..., Any], table: str, columns: str, bad: dict[str, Any], said: str
) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.other (id bigint primary key)")
    postgres.run(f"CREATE TABLE {schema}.t (id bigint primary key, {table.format(schema=schema)})")
    rows, before = [{"id": 1, "v": None}, {"id": 77, **bad}, {"id": 3, "v": None}], postgres.staged()
    found = failure(write, schema, f"id: int64, {columns}", json.dumps(rows).replace("\\u0000", "\\0"), "primary_key: id")
    assert found.code == "MS116"
    assert said in found.message
    assert '{"id": 77}' in found.detail
    assert postgres.rows(f"SELECT count(*) FROM {schema}.t") == [(0,)]
    assert postgres.staged() == before


def test_what_other_tasks_have_staged_goes_too(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / f"in/{number}.json").write_text(json.dumps({"id": number, "v": "a\0b" if number == 0 else "ok"}))
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{rows: {{type: file, path: in, format: json, schema: {{id: int64, v: string}}, mode: {{type: bounded}}}}}}
        sinks: {{pg: {{type: postgres, from: rows, schema: {postgres.schema()}, table: t, primary_key: id, connections: 2}}}}
    """
    before = postgres.staged()
    with pytest.raises(MillstreamError, match="invalid byte sequence"):
        run(pipeline(text))
    assert postgres.staged() == before


def test_a_null_key_is_refused(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    found = failure(write, schema, "id: int64, v: string", "[{id: null, v: a}]", "primary_key: id")
    assert (found.code, "null value in column" in found.message) == ("MS116", True)


def test_bad_rows_become_dead_letters_one_by_one(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.t (id bigint primary key, v varchar(3))")
    rows = [{"id": n, "v": "toolong" if n % 40 == 7 else "ok"} for n in range(200)]
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{rows: {{type: memory, rows: {rows}}}}}
        sinks:
          pg: {{type: postgres, from: rows, schema: {schema}, table: t, primary_key: id, on_error: {{dead_letter: letters}}}}
          letters: {{type: file, path: letters, format: json}}
    """
    report = run(pipeline(text))
    assert report.nodes["pg"].rejected == 5
    letters = [json.loads(line) for path in (tmp_path / "letters").glob("*.json") for line in path.read_text().splitlines()]
    assert sorted(json.loads(letter["raw"])["id"] for letter in letters) == [7, 47, 87, 127, 167]
    assert "too long" in letters[0]["error"]
    assert postgres.rows(f"SELECT count(*) FROM {schema}.t WHERE v = 'ok'") == [(195,)]


def test_the_login_is_told(postgres: Database, write: Callable[..., Any]) -> None:
    for option, code, said in [
        ("password: wrong", "MS111", "password authentication failed"),
        ("database: nowhere", "MS111", "does not exist"),
        ("port: 1", "MS110", "refused"),
        ("sslmode: require", "MS111", "SSL"),
    ]:
        found = failure(write, "public", "id: int64", [{"id": 1}], option)
        assert found.code == code
        assert said in found.message


def test_a_table_that_does_not_fit_is_told(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    found = failure(write, schema, "id: int64", [{"id": 1}], "create: false")
    assert (found.code, f"no table `{schema}.t`" in found.message) == ("MS114", True)
    postgres.run(f"CREATE TABLE {schema}.t (id bigint, amount bigint)")
    found = failure(write, schema, "id: int64, amuont: int64", [{"id": 1, "amuont": 2}], name="q")
    assert "did you mean `amount`" in found.help
    found = failure(write, schema, "id: int64", [{"id": 1}], "primary_key: id", name="r")
    assert "CREATE UNIQUE INDEX" in found.help


def test_columns_are_added_or_left_out_when_asked(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    write(schema, "id: int64", [{"id": 1}], "primary_key: id")
    rows = [{"id": 2, "more": "x", "deep": {"a": 1}}]
    write(schema, "id: int64, more: string, deep: 'struct<a: int64>'", rows, "primary_key: id, evolve: ignore", name="q")
    assert postgres.rows(f"SELECT * FROM {schema}.t ORDER BY id") == [(1,), (2,)]
    write(schema, "id: int64, more: string, deep: 'struct<a: int64>'", rows, "primary_key: id, evolve: add_columns", name="r")
    assert postgres.rows(f"SELECT * FROM {schema}.t ORDER BY id") == [(1, None, None), (2, "x", {"a": 1})]


def test_names_are_names_whatever_they_hold(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    postgres.run("CREATE TABLE IF NOT EXISTS public.victims (id bigint)")
    names = {"schema": f"s{EVIL}", "table": f"t%s{EVIL}", "soft_delete": f"d{EVIL}", "metadata_schema": f"m%{EVIL}"}
    options = ", ".join(f"{option}: {json.dumps(name)}" for option, name in names.items())
    column = f"select{EVIL}"
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources:
          rows: {{type: memory, rows: [{{{json.dumps(column)}: 1, user: '''); DROP TABLE victims; --', _op: i}}]}}
        sinks:
          pg: {{type: postgres, from: rows, primary_key: [{json.dumps(column)}], ordered_by: [user], {options}}}
    """
    run(pipeline(text))
    (row,) = postgres.rows('SELECT * FROM "s{0}"."t%s{0}"'.format(EVIL.replace('"', '""')))
    assert row[:2] == (1, "'); DROP TABLE victims; --")
    assert postgres.rows("SELECT count(*) FROM public.victims") == [(0,)]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (f"soft_delete: {'x' * 70}", "63"),
        ("update_where: {v: '; DROP'}", "cannot be `; DROP`"),
        ("types: {id: 'int); DROP TABLE x'}", "not a type name"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(write: Callable[..., Any], option: str, said: str) -> None:
    found = failure(write, "public", "id: int64", [{"id": 1}], f"primary_key: id, {option}")
    assert said in found.message + found.detail + found.help
