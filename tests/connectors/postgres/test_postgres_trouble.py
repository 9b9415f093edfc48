"""Trouble while it runs: a replica that takes no writes, tables that vanish, keys that are missing, sinks that cannot commit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import Database

from millstream.dev.postgres import NAME, start_postgres
from millstream.errors import Diagnostic, MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = [pytest.mark.spark, pytest.mark.server]
TEXT = """
    connections: {{postgres: {connection}}}
    sources: {{rows: {{type: memory, rows: {rows}, rows_per_epoch: 1}}}}
    sinks: {{pg: {{type: postgres, from: rows, schema: {schema}, table: t, {options}}}}}
    settings: {{checkpoint: ck, restart: {{limit: 50, backoff: 50ms, max_backoff: 100ms}}}}
"""
ROWS = [{"id": n} for n in range(12)]


@pytest.fixture
def own() -> Iterator[Database]:
    """A server that a test may spoil."""
    with start_postgres() as server:
        yield Database(server)


def failure(go: Callable[[], Any]) -> Diagnostic:
    with pytest.raises(MillstreamError) as caught:
        go()
    return caught.value.diagnostics[0]


def test_a_server_that_is_read_only_for_a_while_is_waited_for(
    own: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    """As after a failover: connections are made anew until one takes writes; nothing is lost, nothing comes twice."""
    schema = own.schema()
    moods: list[str] = []

    def watch(snapshot: Any) -> None:
        mood = "off" if any(query.restarts >= 2 for query in snapshot.queries.values()) else "on"
        if mood not in moods:
            moods.append(mood)
            with psycopg.connect(own.address.text, autocommit=True, options="-c default_transaction_read_only=off") as connection:
                connection.execute(f"ALTER DATABASE {NAME} SET default_transaction_read_only = {mood}")

    text = TEXT.format(connection=own.connection, rows=ROWS, schema=schema, options="mode: append")
    report = run(pipeline(text), watch=watch)
    assert report.queries["rows"].restarts >= 2
    assert own.rows(f"SELECT id FROM {schema}.t ORDER BY id") == [(n,) for n in range(12)]


def test_too_many_restarts_end_it_as_temporary(own: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    schema = own.schema()
    text = TEXT.format(connection=own.connection, rows=ROWS[:1], schema=schema, options="mode: append, statement_timeout: 200ms")
    own.run(f"CREATE TABLE {schema}.t (id bigint)")
    with psycopg.connect(own.address.text) as blocking:
        blocking.execute(f"LOCK TABLE {schema}.t IN ACCESS EXCLUSIVE MODE")
        found = failure(lambda: run(pipeline(text.replace("limit: 50", "limit: 1"))))
    assert found.code == "MS112"
    assert "statement timeout" in found.message


def test_a_table_that_vanishes_stops_it_and_is_not_made_again_in_silence(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    schema = postgres.schema()
    text = TEXT.format(connection=postgres.connection, rows=ROWS, schema=schema, options="mode: append")
    gone: list[bool] = []

    def watch(snapshot: Any) -> None:
        if not gone and any(query.epochs >= 2 for query in snapshot.queries.values()):
            gone.append(True)
            postgres.run(f"DROP TABLE {schema}.t")

    found = failure(lambda: run(pipeline(text), watch=watch))
    assert (found.code, "does not exist" in found.message) == ("MS113", True)
    found = failure(lambda: run(pipeline(text)))
    assert (found.code, "earlier epochs" in found.message) == ("MS115", True)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [("[{id: 1, _op: i}]", "create: true", "receives a changelog"), ("[{id: 1}]", "mode: upsert", "upserts")],
)
def test_a_key_that_is_missing_is_told(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], rows: str, options: str, said: str
) -> None:
    text = TEXT.format(connection=postgres.connection, rows=rows, schema=postgres.schema(), options=options)
    found = failure(lambda: run(pipeline(text)))
    assert (found.code, said in found.message) == ("MS118", True)


def test_a_group_needs_one_root_and_one_database(
    postgres: Database, own: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    both = "type: postgres, schema: public, commit_group: g"
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{a: {{type: memory, rows: [{{id: 1}}]}}, b: {{type: memory, rows: [{{id: 1}}]}}}}
        sinks: {{one: {{{both}, from: a, table: g1}}, two: {{{both}, from: b, table: g2}}}}
    """
    assert failure(lambda: pipeline(text)).code == "MS109"
    elsewhere = text.replace("from: b, table: g2", f"from: a, table: g2, port: {own.server.port}").replace(
        ", b: {type: memory, rows: [{id: 1}]}", ""
    )
    assert failure(lambda: run(pipeline(elsewhere))).code == "MS109"
    assert postgres.rows("SELECT count(*) FROM public.g1") == [(0,)]


def test_what_is_staged_goes_when_another_sink_fails(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    schema = postgres.schema()
    both = f"type: postgres, from: rows, schema: {schema}, metadata_schema: {schema}"
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{rows: {{type: memory, schema: {{id: int64, v: int64}}, rows: [{{id: 1, v: null}}]}}}}
        sinks: {{good: {{{both}, table: good}}, bad: {{{both}, table: bad, primary_key: v}}}}
    """
    assert failure(lambda: run(pipeline(text))).code == "MS116"
    assert postgres.rows(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename LIKE 'stage%'") == []
    assert postgres.rows(f"SELECT count(*) FROM {schema}.good") == [(0,)]
