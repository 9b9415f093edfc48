"""The search for rows that Postgres refuses: all of them are found, and nothing of the trial stays."""

from __future__ import annotations

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
import pytest
from tests.servers.postgres import Database

from millstream.connectors.postgres.worker.row_probe import TABLE, Trial, find_refused


@pytest.mark.parametrize("bad", [[], [0], [99], [0, 1, 2], [49, 50], [3, 97, 98, 99], list(range(100))])
def test_every_bad_row_is_found_and_none_is_written(postgres: Database, bad: list[int]) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.t (id bigint CHECK (id >= 0))")
    trial = Trial(postgres.address.text, "id bigint", (f"INSERT INTO {schema}.t SELECT id FROM {TABLE}",), ("id",))
    batch = pa.RecordBatch.from_pydict({"id": [-1 if number in bad else number for number in range(100)]})
    with adbc.connect(trial.address) as connection:
        found = dict(find_refused(connection, trial, batch))
    assert sorted(found) == bad and all("check constraint" in reason for reason in found.values())
    assert postgres.rows(f"SELECT count(*) FROM {schema}.t") == [(0,)]


def test_what_no_row_is_to_blame_for_is_no_reject(postgres: Database) -> None:
    trial = Trial(postgres.address.text, "id bigint", (f"INSERT INTO nowhere SELECT id FROM {TABLE}",), ("id",))
    with adbc.connect(trial.address) as connection, pytest.raises(adbc.Error, match="nowhere"):
        list(find_refused(connection, trial, pa.RecordBatch.from_pydict({"id": [1]})))
