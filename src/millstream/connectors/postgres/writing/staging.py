"""On the workers: the rows of a task go into a staging table of that attempt alone, by binary COPY.

A task that is tried again writes another table; only the attempts that Spark counts as successful report theirs, so a row is merged once
whatever happened to the others. Staging tables are unlogged: a server that crashes empties them, and the number of rows tells.

This module travels to the workers and imports nothing that does not. A failure is a result like any other: text does not survive the way
through Spark's exceptions.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from millstream.plan.archives import forget_archives

RESULT = "table_name string, row_count bigint, state string, error string"
CONVERSION = "22008"
"""A value that COPY's binary form cannot hold: a date before the Stone Age."""


class Attempt(NamedTuple):
    """What became of one task's rows."""

    table: str
    rows: int
    state: str = ""
    """The SQLSTATE of what went wrong; `?` when the connection did."""
    error: str = ""


@dataclass(frozen=True)
class Job:
    """Where a task stages its rows."""

    address: str = field(repr=False)
    schema: str
    """Quoted, as everything that goes into a statement."""
    prefix: str
    definition: str
    """The staging table's columns."""


Batches = Iterator[pa.RecordBatch]


def staged(job: Job) -> Callable[[Batches], Batches]:
    """What Spark runs."""

    def run(batches: Batches) -> Batches:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is not None:
            yield _row(_stage(job, first, filled))
        forget_archives()

    return run


def _stage(job: Job, first: pa.RecordBatch, others: Batches) -> Attempt:
    import adbc_driver_postgresql.dbapi as adbc

    name = f"{job.prefix}_{uuid.uuid4().hex[:12]}"
    try:
        with adbc.connect(job.address) as connection:
            rows = _copy(connection.cursor(), job, name, first, others)
            connection.commit()
    except adbc.Error as error:
        return Attempt(name, 0, failure_state(error), str(error))
    return Attempt(name, rows)


def _copy(cursor: Any, job: Job, name: str, first: pa.RecordBatch, others: Batches) -> int:
    counted = 0

    def all_batches() -> Batches:
        nonlocal counted
        for batch in itertools.chain([first], others):
            counted += batch.num_rows
            yield batch

    cursor.execute(f'CREATE UNLOGGED TABLE {job.schema}."{name}" ({job.definition}) WITH (autovacuum_enabled = off)')
    reader = pa.RecordBatchReader.from_batches(first.schema, all_batches())
    cursor.adbc_ingest(name, reader, mode="append", db_schema_name=job.schema[1:-1].replace('""', '"'))
    return counted


def failure_state(error: Exception) -> str:
    """The SQLSTATE, or what stands for one."""
    state = str(getattr(error, "sqlstate", None) or "").strip("\0")
    if not state and "writing COPY data" in str(error):
        return CONVERSION
    return state or "?"


def _row(attempt: Attempt) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([value]) for value in attempt], ["table_name", "row_count", "state", "error"])
