"""Names are names: reserved words, quotes, dots and long ones work or are refused, and none is ever read as SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.postgres_source.follower import Follower, code, ops
from tests.connectors.postgres_source.test_postgres_incremental import Poller
from tests.servers.postgres import Database

from millstream.clients.postgres import quote_name
from millstream.connectors.postgres.read.catalog import split_name
from millstream.connectors.postgres.read.cdc_start import slot_name
from millstream.errors import RunError, SpecError

Follow = Callable[..., Follower]
EVIL = "x'; DROP TABLE victim; --"
AWKWARD = ["select", 'quo"te', "it's", "Upper", "sp ace", "dot.ted", "ü", "n" * 63, EVIL]


def written(schema: str, name: str) -> str:
    return f"{schema}.{quote_name(name)}"


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_followed(postgres: Database, follow: Follow, name: str) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.victim (id int)")
    postgres.run(f"CREATE TABLE {written(schema, name)} ({quote_name(name)} int PRIMARY KEY, {quote_name('b' + name[:62])} text)")
    postgres.run(f"INSERT INTO {written(schema, name)} VALUES (1, 'a')")
    publication = f"{schema}{name}"[:63]
    follower = follow(written(schema, name), publication=publication, source={"search_path": schema})
    assert ops(follower.epoch()) == [("i", 1, "a")]
    postgres.run(f"UPDATE {written(schema, name)} SET {quote_name(name)} = 2")
    assert ops(follower.epoch()) == [("d", 1, None), ("i", 2, "a")]
    poller = Poller(postgres, written(schema, name), follower.context.directory, cursor=name, columns=[name])
    assert poller.epoch() == [{name: 2}]
    assert postgres.rows(f"SELECT count(*) FROM {schema}.victim") == [(0,)]
    postgres.run(f"DROP PUBLICATION {quote_name(publication)}")


@pytest.mark.parametrize("option", ["table", "columns", "cursor", "search_path", "types"])
def test_sql_in_a_name_is_not_run(postgres: Database, tmp_path: Path, option: str) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.victim (id int PRIMARY KEY)")
    values: dict[str, Any] = {"table": f"{schema}.victim", "cursor": "id", "columns": ["id"], "search_path": schema}
    evil: dict[str, Any] = {"columns": [EVIL], "types": {EVIL: "int64"}, "table": quote_name(EVIL)}
    values[option] = evil.get(option, EVIL)
    poll = partial(Poller, postgres, values.pop("table"), tmp_path, **values)
    with pytest.raises(RunError, match="MS111" if option == "search_path" else "MS120"):
        poll()
    assert postgres.rows(f"SELECT count(*) FROM {schema}.victim") == [(0,)]


def test_a_condition_can_change_nothing(postgres: Database, table: str, tmp_path: Path) -> None:
    """`where` is SQL by purpose; the sessions that read are read-only."""
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')", f"CREATE SEQUENCE {table}_s")
    for where in (f"nextval('{table}_s') > 0", "true); DROP TABLE victim; SELECT (true"):
        with pytest.raises(RunError):
            Poller(postgres, table, tmp_path, cursor="id", where=where).epoch()


@pytest.mark.parametrize(("text", "parts"), [("t", ("", "t")), ("s.t", ("s", "t")), ('s."a.b"', ("s", "a.b")), ('"a""b"', ("", 'a"b'))])
def test_a_name_is_taken_apart(text: str, parts: tuple[str, str]) -> None:
    assert split_name(text) == parts


@pytest.mark.parametrize("text", ["a.b.c", 'a"b', ".", "", "x" * 64, f"s.{'ü' * 32}", '"'])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a table name|longer than"):
        split_name(text)


def test_options_that_do_not_fit_are_told_at_once(pipeline: Callable[..., Any]) -> None:
    base = "sources: {{t: {{type: postgres, database: d, table: {}}}}}\nsinks: {{o: {{type: blackhole, from: t}}}}"
    for options in (
        "a.b.c",
        "t, mode: {type: cdc, slot: 'No-Slot'}",
        "t, mode: {type: cdc}, where: a > 1",
        "t, mode: {type: cdc}, max_rows_per_epoch: 5",
        f"t, mode: {{type: cdc, publication: {'p' * 64}}}",
    ):
        with pytest.raises(SpecError) as raised:
            pipeline(base.format(options))
        assert code(raised) == "MS008"


def test_a_slot_is_named_after_pipeline_and_source() -> None:
    assert slot_name("Shop-Orders", "raw.orders") == "millstream_shop_orders_raw_orders"
    long, other = slot_name("p" * 80, "a"), slot_name("p" * 80, "b")
    assert len(long) == 63 and long != other


def test_names_that_are_not_there_are_told_with_the_nearest(postgres: Database, table: str, tmp_path: Path) -> None:
    with pytest.raises(RunError) as raised:
        Poller(postgres, f"{table}t", tmp_path)
    assert code(raised) == "MS120" and f"did you mean `{table}`" in str(raised.value)
    with pytest.raises(RunError) as raised:
        Poller(postgres, table, tmp_path, columns=["nam"])
    assert "did you mean `name`" in str(raised.value)
