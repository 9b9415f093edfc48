"""Which rows would Postgres refuse? Each batch is merged for trial in a transaction that is always rolled back; where that fails, its
halves are tried, down to the row. Asked only when bad rows are wanted one by one (`on_error`), or when an epoch has failed and its row
is to be named.

The statements are those of the real merge, so that whatever Postgres refuses is found: a text too long, a number out of range, a check, a
foreign key, a trigger. Rows that only fail together (two of one epoch with the same value in a unique column) are not found here.
This module travels to the workers and imports nothing that does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.connectors.postgres.writing.staging import Batches, failure_state

REJECT = "_reject"
ROW = "_millstream_row"
"""The struct of all columns of a row."""
REJECT_TYPE = pa.struct([pa.field("raw", pa.string()), pa.field("error", pa.string())])
TABLE = "_millstream_trial"
ROWS_TO_BLAME = ("22", "23", "44", "P0001", "21000")
"""SQLSTATEs of errors that are about a row, and not about the statement."""


@dataclass(frozen=True)
class Trial:
    """How rows are tried."""

    address: str = field(repr=False)
    definition: str
    statements: tuple[str, ...]
    """The merge, from the table `TABLE`."""
    columns: tuple[str, ...]
    """What is staged; other columns of the rows only pass through."""


def judged(trial: Trial) -> Callable[[Batches], Batches]:
    """What Spark runs: the rows in the struct `ROW`, with what is staged beside it, become rows with a reject or none."""

    def run(batches: Batches) -> Batches:
        import adbc_driver_postgresql.dbapi as adbc

        with adbc.connect(trial.address) as connection:
            for batch in batches:
                errors = dict(refused(connection, trial, batch.select(list(trial.columns)))) if batch.num_rows else {}
                yield _told(batch, errors)

    return run


def refused(connection: Any, trial: Trial, batch: pa.RecordBatch, start: int = 0) -> Iterator[tuple[int, str]]:
    """The rows that fail, by number, and why."""
    error = _failure(connection, trial, batch)
    if not error:
        return
    if batch.num_rows == 1:
        yield start, error
        return
    half = batch.num_rows // 2
    yield from refused(connection, trial, batch.slice(0, half), start)
    yield from refused(connection, trial, batch.slice(half), start + half)


def _failure(connection: Any, trial: Trial, batch: pa.RecordBatch) -> str:
    """What Postgres says about these rows; empty when it takes them. What no row is to blame for is raised."""
    cursor = connection.cursor()
    try:
        cursor.execute(f"CREATE TEMPORARY TABLE {TABLE} ({trial.definition}) ON COMMIT DROP")
        cursor.adbc_ingest(TABLE, pa.Table.from_batches([batch]), mode="append", db_schema_name="pg_temp")
        for statement in trial.statements:
            cursor.execute(statement)
        return ""
    except Exception as error:
        state = failure_state(error)
        if not state.startswith(ROWS_TO_BLAME):
            raise
        return f"{sentence(str(error))} ({state})"
    finally:
        cursor.close()
        connection.rollback()


def sentence(text: str) -> str:
    """Postgres' own words, and the detail that names the values, without what the client puts around."""
    lines = (text.partition("ERROR:  ")[2] or text).splitlines()
    details = [line.removeprefix("DETAIL:  ") for line in lines[1:] if line.startswith("DETAIL:  ")]
    return "; ".join([lines[0].rstrip("."), *(detail.rstrip(".") for detail in details)])


def _told(batch: pa.RecordBatch, errors: dict[int, str]) -> pa.RecordBatch:
    row = batch.column(ROW)
    rejects = pa.array([{"raw": _raw(row, index), "error": error} for index, error in errors.items()], REJECT_TYPE)
    place = dict(zip(errors, range(len(errors)), strict=True))
    told = rejects.take(pa.array(map(place.get, range(batch.num_rows)), pa.int64())) if errors else pa.nulls(batch.num_rows, REJECT_TYPE)
    return pa.RecordBatch.from_arrays([*row.flatten(), told], [*(each.name for each in row.type), REJECT])


def _raw(row: pa.StructArray, index: int) -> str:
    return json.dumps(row[index].as_py(), default=str, ensure_ascii=False)
