"""A Postgres table as a sink, exactly once per epoch.

stage:  the rows of a small epoch are collected; of others every task COPYs its rows, in binary, into a staging table of its own attempt.
commit: one transaction locks the ledger's row, checks that all staged rows are there, merges them, and writes the ledger. Collected rows
        are parameters of the merge, on a connection that stays open.

If killed before the transaction commits, the staged rows are garbage and are removed. If killed after, the ledger contains the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.clients.postgres import open_connection
from millstream.connectors.postgres.worker import row_probe
from millstream.connectors.postgres.write.columns import (
    PLACE,
    StagedColumn,
    column_definitions,
    columns_of,
    to_staging_types,
)
from millstream.connectors.postgres.write.commit import Work
from millstream.connectors.postgres.write.delivery import PostgresDelivery, PostgresDeliveryRun
from millstream.connectors.postgres.write.merge import Merge, Mode
from millstream.connectors.postgres.write.options import PostgresSinkOptions
from millstream.connectors.postgres.write.target import TableTarget, Wanted, prepare_table
from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.plan.changelog import SEQUENCE, op_of
from millstream.plan.components import Dataset, Epoch, NodeContext, Problem, Staged
from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class MergePlan:
    """How the rows of a frame are written to the table."""

    columns: tuple[StagedColumn, ...]
    """The staged columns."""
    merge: Merge

    @property
    def definition(self) -> str:
        return column_definitions(self.columns, self.merge.target.wanted.key)


class PostgresSink(PostgresSinkOptions, PostgresDelivery):
    """Writes rows to a table of Postgres. Every epoch arrives exactly once, even if a worker, the driver or the server dies.

    With a primary key the table follows the stream: the last row of a key wins, a row whose `_op` is `d` deletes, and the columns `_op` and
    `_seq` are not stored. Without one, rows are appended. The table is created if missing.
    Temporary failures (network, deadlock, too many connections, a read-only replica after a failover) are retried, as often as
    `settings.restart` allows. A row that Postgres refuses stops the pipeline with its key, or is handled by `on_error`.
    """

    type: ClassVar[str] = "postgres"
    summary: ClassVar[str] = "Write to a Postgres table: append, upsert or replace, exactly once."
    commit_method: ClassVar[str] = (
        "one transaction locks the ledger, merges the rows and writes the ledger; the rows of a small epoch come with the merge, others "
        "are staged in one table per task attempt, and counted before they are merged"
    )
    example: ClassVar[str] = """
        pg.large_orders:
          type: postgres
          from: orders
          host: localhost
          database: app
          user: app
          password: secret://env/PGPASSWORD
          table: large_orders
          primary_key: id
          update_where: {updated_at: ">"}
          evolve: add_columns
    """
    target_rejects: ClassVar[bool] = True
    adjustable: ClassVar[frozenset[str]] = PostgresDelivery.adjustable | {"on_conflict", "update_where", "evolve"}

    @property
    def validates_rows(self) -> bool:
        return True

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return self.problems_of(next(iter(inputs.values()), None))

    def takes_updates(self, key: tuple[str, ...]) -> bool:
        return self.mode is not None or bool(key)

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_table("postgres", f"{self.host}:{self.port}", self.database, self.db_schema, self.table),)

    def open(self, context: NodeContext) -> PostgresSinkRun:
        return PostgresSinkRun(self, context)


class PostgresSinkRun(PostgresDeliveryRun):
    """Keeps the table's description for each set of columns."""

    def __init__(self, sink: PostgresSink, context: NodeContext) -> None:
        super().__init__(sink, context)
        self.sink = sink
        self._targets: dict[tuple[StagedColumn, ...], TableTarget] = {}

    def collapse_key(self, columns: Iterable[str]) -> tuple[str, ...]:
        mode = self._mode(columns)
        return (
            self.context.primary_key if self.sink.deduplicate and mode != "append" and op_of(columns) else ()
        )  # for plain rows the merge picks the last one

    def with_rejects(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        from millstream.connectors.postgres import worker

        plan = self._plan(frame)
        statements = tuple(plan.merge.statements([row_probe.TABLE]))
        job = row_probe.Trial(self.sink.address().text, plan.definition, statements, tuple(column.name for column in plan.columns))
        row = f"struct({', '.join(map(quote_column, frame.columns))}) AS {row_probe.ROW}"
        result = frame.limit(0).withColumn(row_probe.REJECT, F.lit(None).cast("struct<raw: string, error: string>")).schema
        function = row_probe.probe(job)
        with by_value(worker):
            return to_staging_types(frame, plan.columns, row).mapInArrow(function, result)  # type: ignore[arg-type]  # it gets an iterator

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[Work]:
        plan, blame = self._plan(frame, epoch.time), partial(self._blame, frame)
        return self.stage_columns(frame, plan.columns, plan.merge.target.wanted.key, epoch, plan.merge.statements, blame)

    def _mode(self, columns: Iterable[str]) -> Mode:
        mode = self.sink.mode or ("upsert" if self.context.primary_key else "append")
        if mode == "upsert" and not self.context.primary_key:
            message = f"sink `{self.context.name}` upserts, but its rows have no primary key"
            raise RunError(Diagnostic("MS118", message, help="add `primary_key: COLUMN` to it: columns that no two of its rows share"))
        if self.sink.mode is None and mode == "append" and op_of(columns):
            message = f"sink `{self.context.name}` receives a changelog, but its rows have no primary key"
            help_ = (
                "add `primary_key: COLUMN`, columns that no two of its rows share; or `mode: append`, to store the changes themselves; "
                "a query of bounded inputs returns plain rows with `emit: final`, and one with GROUP BY window(…) when a window has closed"
            )
            raise RunError(Diagnostic("MS118", message, help=help_))
        return mode

    def _plan(self, frame: DataFrame, time: str = "") -> MergePlan:
        names, mode = frame.columns, self._mode(frame.columns)
        op = op_of(names) if mode != "append" else ""
        columns = columns_of(frame, self.sink.arrays, self.sink.types)
        kept = tuple(column for column in columns if not op or column.name not in {op, SEQUENCE})
        target = self._target(kept)
        written = tuple(column for column in kept if column.name in target.columns)
        latest = self._latest(names) if self.context.primary_key and mode != "append" and not op else ()
        merge = Merge(target, written, mode, op, self.sink.on_conflict, self.sink.update_where, self.sink.soft_delete or "", latest, time)
        beside = [column for column in (*columns, PLACE) if column.name in (op, *latest) and column not in written]
        return MergePlan((*written, *beside), merge)

    def _latest(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns that decide which of several plain rows with one key is the last."""
        return (*([SEQUENCE] if SEQUENCE in names else []), PLACE.name) if self.sink.deduplicate else ()

    def _target(self, columns: tuple[StagedColumn, ...]) -> TableTarget:
        """The table; read once per run, and again when the columns change."""
        known = self._targets
        if columns not in known:
            extra = {self.sink.soft_delete: "timestamptz"} if self.sink.soft_delete else {}
            wanted = Wanted(
                self.sink.db_schema,
                self.sink.table,
                self.context.primary_key,
                self.sink.create,
                self.sink.evolve,
                self.sink.ordered_by,
                extra,
            )
            with open_connection(self.sink.address()) as connection:
                known[columns] = prepare_table(connection, wanted, columns, self.held)
        return known[columns]

    def _blame(self, frame: DataFrame) -> str:
        """The key of the first row that Postgres refuses, and why; empty when each row alone would be accepted."""
        from pyspark.sql import functions as F

        rejects = self.with_rejects(frame).where(F.col(row_probe.REJECT).isNotNull()).select(f"{row_probe.REJECT}.*").limit(1).collect()
        if not rejects:
            return ""
        row = json.loads(rejects[0]["raw"])
        shown = {name: row[name] for name in self.context.primary_key} or row
        return f"the row with {json.dumps(shown, default=str, ensure_ascii=False)[:300]}: {rejects[0]['error']}"
