"""Which rows a table refuses is decided once per epoch: whatever the table holds when the epoch is repeated, no row is in neither place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.postgres import Database

from millstream.connectors.postgres.sink import PostgresSink, PostgresSinkRun
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    connections: {{postgres: {connection}}}
    sources:
      rows: {{type: memory, rows: [{{id: 1, parent: 1}}, {{id: 2, parent: 2}}]}}
    sinks:
      pg: {{type: postgres, from: rows, schema: {schema}, table: t, on_error: {{dead_letter: bad}}}}
      bad: {{type: postgres, schema: {schema}, table: bad}}
"""


class Family:
    """Children that need their parents. The epoch is killed when its dead letters are committed and its rows are not."""

    def __init__(self, database: Database, load: Callable[..., Topology], run: Callable[..., Report]) -> None:
        self.database, self._load, self._run, self.schema = database, load, run, database.schema()
        tables = "CREATE TABLE {0}.p (id bigint PRIMARY KEY); CREATE TABLE {0}.t (id bigint, parent bigint REFERENCES {0}.p (id))"
        database.run(tables.format(self.schema), f"INSERT INTO {self.schema}.p VALUES (1)")

    def go(self, **options: object) -> Report:
        return self._run(self._load(TEXT.format(connection=self.database.connection, schema=self.schema)), **options)

    def killed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit = PostgresSinkRun.commit

        def dying(sink: Any, staged: Any, epoch: Any) -> None:
            if epoch.sink == "pg":
                raise OSError("killed here")
            commit(sink, staged, epoch)

        with monkeypatch.context() as patched:
            patched.setattr(PostgresSinkRun, "commit", dying)
            with pytest.raises(MillstreamError):
                self.go()
        assert self.counts() == (0, 1)

    def counts(self) -> tuple[int, int]:
        ((written,),) = self.database.rows(f"SELECT count(*) FROM {self.schema}.t")
        ((refused,),) = self.database.rows(f"SELECT count(*) FROM {self.schema}.bad")
        return written, refused


@pytest.fixture
def family(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Family:
    return Family(postgres, pipeline, run)


def test_a_row_that_was_set_aside_stays_aside(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    family.killed(monkeypatch)
    family.database.run(f"INSERT INTO {family.schema}.p VALUES (2)")
    family.go()
    assert family.counts() == (1, 1)


def test_a_row_that_passed_is_not_lost_in_silence_when_its_parent_goes(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    family.killed(monkeypatch)
    family.database.run(f"DELETE FROM {family.schema}.p")
    with pytest.raises(MillstreamError, match="foreign key"):
        family.go()
    family.go(accept_replay=True)  # judged anew: the dead letters are committed, so the row is in neither place
    assert family.counts() == (0, 1)


def test_judged_anew_a_row_is_in_both_places(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresSink, "target_rejects", False)
    family.killed(monkeypatch)
    family.database.run(f"INSERT INTO {family.schema}.p VALUES (2)")
    family.go()
    assert family.counts() == (2, 1)
