"""A Postgres table as a sink, exactly once per epoch.

stage:  every task COPYs its rows, in binary, into a staging table of its own attempt.
commit: one transaction locks the ledger's row, checks that all staged rows are there, merges them, and writes the ledger.

Killed before the transaction commits, what is staged is rubbish, and swept away. Killed after, the ledger says that the epoch is held.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.clients.postgres import connected
from millstream.connectors.postgres.writing import trial
from millstream.connectors.postgres.writing.columns import PLACE, Column, columns_of, defined, placed, travelling
from millstream.connectors.postgres.writing.delivering import PostgresDelivery
from millstream.connectors.postgres.writing.merging import Merge, Mode
from millstream.connectors.postgres.writing.options import PostgresSinkOptions
from millstream.connectors.postgres.writing.target import Target, Wanted, fitting
from millstream.errors import Diagnostic, RunError
from millstream.plan import shipping
from millstream.plan.changelog import SEQUENCE, op_of
from millstream.plan.components import Epoch, NodeContext, Problem, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Plan:
    """How the rows of a frame reach the table."""

    columns: tuple[Column, ...]
    """What is staged."""
    merge: Merge

    @property
    def definition(self) -> str:
        return defined(self.columns, self.merge.target.wanted.key)


class PostgresSink(PostgresSinkOptions, PostgresDelivery):
    """Writes rows to a table of Postgres. Every epoch arrives exactly once, whatever dies in between: worker, driver or server.

    With a primary key the table follows the stream: the last row of a key wins, a row whose `_op` is `d` deletes, and the columns `_op` and
    `_seq` are not stored. Without one, rows are added as they come. The table is made when it is missing.

    Failures that may pass (network, deadlock, too many connections, a read-only replica after a failover) are tried again, as often as
    `settings.restart` says. A row that Postgres refuses stops the pipeline with its key, or is set aside by `on_error`.
    """

    type: ClassVar[str] = "postgres"
    summary: ClassVar[str] = "Write to a Postgres table: append, upsert or replace, exactly once."
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
    judges_by_target: ClassVar[bool] = True
    adjustable: ClassVar[frozenset[str]] = PostgresDelivery.adjustable | {"on_conflict", "update_where", "evolve"}

    @property
    def judges(self) -> bool:
        return True

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return self.problems_of(next(iter(inputs.values()), None))

    def collapses(self, columns: Iterable[str], context: NodeContext) -> tuple[str, ...]:
        mode = self._mode(context, columns)
        return context.primary_key if self.deduplicate and mode != "append" and op_of(columns) else ()  # of plain rows the merge picks

    def judged(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        from pyspark import cloudpickle
        from pyspark.sql import functions as F

        from millstream.connectors import postgres

        plan = self._plan(frame, context)
        statements = tuple(plan.merge.statements([trial.TABLE]))
        job = trial.Trial(self.address().text, plan.definition, statements, tuple(column.name for column in plan.columns))
        row = F.struct(*[F.col(f"`{name.replace('`', '``')}`") for name in frame.columns]).alias(trial.ROW)
        result = frame.limit(0).withColumn(trial.REJECT, F.lit(None).cast("struct<raw: string, error: string>")).schema
        function = trial.judged(job)
        with shipping.by_value(cloudpickle, context.directory, function, postgres):
            return travelling(placed(frame), plan.columns, row).mapInArrow(function, result)  # type: ignore[arg-type]  # it gets an iterator

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        assert epoch.context is not None
        plan, blame = self._plan(frame, epoch.context, epoch.time), partial(self._blame, frame, epoch.context)
        return self.staged(placed(frame), plan.columns, plan.merge.target.wanted.key, epoch, plan.merge.statements, blame)

    def _mode(self, context: NodeContext, columns: Iterable[str]) -> Mode:
        mode = self.mode or ("upsert" if context.primary_key else "append")
        if mode == "upsert" and not context.primary_key:
            message = f"sink `{context.name}` is to upsert, and its rows have no primary key"
            raise RunError(Diagnostic("MS118", message, help="add `primary_key: COLUMN` to it: columns that no two of its rows share"))
        if self.mode is None and mode == "append" and op_of(columns):
            message = f"sink `{context.name}` receives a changelog, and its rows have no primary key"
            help_ = (
                "add `primary_key: COLUMN`, columns that no two of its rows share; or `mode: append`, to store what happened to each row"
            )
            raise RunError(Diagnostic("MS118", message, help=help_))
        return mode

    def _plan(self, frame: DataFrame, context: NodeContext, time: str = "") -> Plan:
        names, mode = frame.columns, self._mode(context, frame.columns)
        op = op_of(names) if mode != "append" else ""
        columns = columns_of(frame, self.arrays, self.types)
        kept = tuple(column for column in columns if not op or column.name not in {op, SEQUENCE})
        target = self._target(kept, context)
        written = tuple(column for column in kept if column.name in target.columns)
        latest = self._latest(names) if context.primary_key and mode != "append" and not op else ()
        merge = Merge(target, written, mode, op, self.on_conflict, self.update_where, self.soft_delete or "", latest, time)
        beside = [column for column in (*columns, PLACE) if column.name in (op, *latest) and column not in written]
        return Plan((*written, *beside), merge)

    def _latest(self, names: Iterable[str]) -> tuple[str, ...]:
        """What says which of several plain rows with one key is the last."""
        return (*([SEQUENCE] if SEQUENCE in names else []), PLACE.name) if self.deduplicate else ()

    def _target(self, columns: tuple[Column, ...], context: NodeContext) -> Target:
        """The table; looked at once per run, and again when the columns change."""
        known: dict[tuple[Column, ...], Target] = context.memory.setdefault("targets", {})
        if columns not in known:
            extra = {self.soft_delete: "timestamptz"} if self.soft_delete else {}
            wanted = Wanted(self.db_schema, self.table, context.primary_key, self.create, self.evolve, self.ordered_by, extra)
            with connected(self.address()) as connection:
                known[columns] = fitting(connection, wanted, columns, bool(context.memory.get("held")))
        return known[columns]

    def _blame(self, frame: DataFrame, context: NodeContext) -> str:
        """The key of the first row that Postgres refuses, and why; empty when each row alone would pass."""
        from pyspark.sql import functions as F

        rejects = self.judged(frame, context).where(F.col(trial.REJECT).isNotNull()).select(f"{trial.REJECT}.*").limit(1).collect()
        if not rejects:
            return ""
        row = json.loads(rejects[0]["raw"])
        shown = {name: row[name] for name in context.primary_key} or row
        return f"the row with {json.dumps(shown, default=str, ensure_ascii=False)[:300]}: {rejects[0]['error']}"
