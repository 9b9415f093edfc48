"""Stages the rows of a task on a worker: into a table of that attempt alone, by binary COPY.

A retried task writes another table; only the attempts that Spark counts as successful are reported, so a row is merged once. Staging tables
are unlogged: a server crash empties them, and the row count shows that. This package is pickled to the workers and imports only what is
pickled too. A failure is returned as a result: Spark's exceptions do not preserve text.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from millstream.worker.archives import forget_archives

RESULT = "table_name string, row_count bigint, state string, error string, size bigint"
CONVERSION = "22008"
"""A value that binary COPY cannot hold, such as a date before 4713 BC."""


class Attempt(NamedTuple):
    """The result of one task's rows."""

    table: str
    rows: int
    state: str = ""
    """The SQLSTATE of the failure; `?` when the connection failed."""
    error: str = ""
    size: int = 0
    """The bytes of its rows."""


@dataclass(frozen=True)
class StagingJob:
    """Where a task stages its rows."""

    address: str = field(repr=False)
    schema: str
    """Quoted, like everything in a statement."""
    prefix: str
    definition: str
    """The staging table's columns."""


Batches = Iterator[pa.RecordBatch]


def make_stager(job: StagingJob) -> Callable[[Batches], Batches]:
    """The function that Spark runs."""

    def run(batches: Batches) -> Batches:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is not None:
            yield _row(_stage(job, first, filled))
        forget_archives()

    return run


def _stage(job: StagingJob, first: pa.RecordBatch, others: Batches) -> Attempt:
    import adbc_driver_postgresql.dbapi as adbc

    name = f"{job.prefix}_{uuid.uuid4().hex[:12]}"
    try:
        with adbc.connect(job.address) as connection:
            rows, size = _copy(connection.cursor(), job, name, first, others)
            connection.commit()
    except adbc.Error as error:
        return Attempt(name, 0, failure_state(error), str(error))
    return Attempt(name, rows, size=size)


def _copy(cursor: Any, job: StagingJob, name: str, first: pa.RecordBatch, others: Batches) -> tuple[int, int]:
    counted = size = 0

    def all_batches() -> Batches:
        nonlocal counted, size
        for batch in itertools.chain([first], others):
            counted += batch.num_rows
            size += batch.nbytes
            yield batch

    cursor.execute(f'CREATE UNLOGGED TABLE {job.schema}."{name}" ({job.definition}) WITH (autovacuum_enabled = off)')
    reader = pa.RecordBatchReader.from_batches(first.schema, all_batches())
    cursor.adbc_ingest(name, reader, mode="append", db_schema_name=job.schema[1:-1].replace('""', '"'))
    return counted, size


def failure_state(error: Exception) -> str:
    """The SQLSTATE, or a substitute."""
    state = str(getattr(error, "sqlstate", None) or "").strip("\0")
    if not state and "writing COPY data" in str(error):
        return CONVERSION
    return state or "?"


def _row(attempt: Attempt) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([value]) for value in attempt], ["table_name", "row_count", "state", "error", "size"])
