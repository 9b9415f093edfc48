"""Finds the rows that Postgres would refuse: each batch is merged in a transaction that is always rolled back; if that fails, its halves
are tried, down to the row.

This runs only when rejects are isolated (`on_error`), or when an epoch has failed and its row must be named. The statements are those of
the real merge, so that every refusal is found: a text too long, a number out of range, a check, a foreign key, a trigger. Rows that fail
only together (two rows of one epoch with the same value in a unique column) are not found here. This package is pickled to the workers and
imports only what is pickled too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.connectors.postgres.worker.staging import Batches, failure_state

REJECT = "_reject"
ROW = "_millstream_row"
"""The struct of all columns of a row."""
REJECT_TYPE = pa.struct([pa.field("raw", pa.string()), pa.field("error", pa.string())])
TABLE = "_millstream_trial"
ROWS_TO_BLAME = ("22", "23", "44", "P0001", "21000")
"""SQLSTATEs of errors that concern a row, and not the statement."""


@dataclass(frozen=True)
class Trial:
    """How rows are tested."""

    address: str = field(repr=False)
    definition: str
    statements: tuple[str, ...]
    """The merge, from the table `TABLE`."""
    columns: tuple[str, ...]
    """The staged columns; other columns of the rows only pass through."""


def probe(trial: Trial) -> Callable[[Batches], Batches]:
    """The function that Spark runs: the rows in the struct `ROW`, with the staged columns next to it, become rows with a reject or none."""

    def run(batches: Batches) -> Batches:
        import adbc_driver_postgresql.dbapi as adbc

        with adbc.connect(trial.address) as connection:
            for batch in batches:
                errors = dict(find_refused(connection, trial, batch.select(list(trial.columns)))) if batch.num_rows else {}
                yield _with_errors(batch, errors)

    return run


def find_refused(connection: Any, trial: Trial, batch: pa.RecordBatch, start: int = 0) -> Iterator[tuple[int, str]]:
    """The rows that fail, by index, and why."""
    error = _failure(connection, trial, batch)
    if not error:
        return
    if batch.num_rows == 1:
        yield start, error
        return
    half = batch.num_rows // 2
    yield from find_refused(connection, trial, batch.slice(0, half), start)
    yield from find_refused(connection, trial, batch.slice(half), start + half)


def _failure(connection: Any, trial: Trial, batch: pa.RecordBatch) -> str:
    """Postgres' message about these rows; empty when it accepts them. Errors that are not about a row are raised."""
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
    """Postgres' message and the detail with the values, without the client's additions."""
    lines = (text.partition("ERROR:  ")[2] or text).splitlines()
    details = [line.removeprefix("DETAIL:  ") for line in lines[1:] if line.startswith("DETAIL:  ")]
    return "; ".join([lines[0].rstrip("."), *(detail.rstrip(".") for detail in details)])


def _with_errors(batch: pa.RecordBatch, errors: dict[int, str]) -> pa.RecordBatch:
    row = batch.column(ROW)
    rejects = pa.array([{"raw": _raw(row, index), "error": error} for index, error in errors.items()], REJECT_TYPE)
    place = dict(zip(errors, range(len(errors)), strict=True))
    told = rejects.take(pa.array(map(place.get, range(batch.num_rows)), pa.int64())) if errors else pa.nulls(batch.num_rows, REJECT_TYPE)
    return pa.RecordBatch.from_arrays([*row.flatten(), told], [*(each.name for each in row.type), REJECT])


def _raw(row: pa.StructArray, index: int) -> str:
    return json.dumps(row[index].as_py(), default=str, ensure_ascii=False)
