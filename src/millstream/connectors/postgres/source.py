"""Postgres as a source: a table once, a table by a cursor, or every change of a table.

Each way is a feed (`reading/`): offsets, and parts that workers read as Arrow batches. The driver looks at the table first, so that what is
wrong is said before anything starts; what must not change later (ranges of keys, the start of the changes) is pinned in the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from millstream.clients.postgres import NAME_BYTES, Address, connected
from millstream.connectors.postgres.reading.catalog import Table, look, reading, split
from millstream.connectors.postgres.reading.changes import changed_schema, published, started
from millstream.connectors.postgres.reading.feed import Feed, stream
from millstream.connectors.postgres.reading.following import following
from millstream.connectors.postgres.reading.incremental import Incremental, pair_of
from millstream.connectors.postgres.reading.options import BoundedMode, CdcMode, IncrementalMode, PostgresSourceOptions
from millstream.connectors.postgres.reading.slots import Names, advance
from millstream.connectors.postgres.reading.snapshot import Key, Snapshot, cut, key_of, pin, pinned
from millstream.connectors.postgres.reading.spool import Spool, forget
from millstream.plan import types
from millstream.plan.components import REJECT, NodeContext, Problem, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_REJECT = f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}"


class PostgresSource(PostgresSourceOptions, Source):
    """Reads a table of Postgres: all rows that are there, rows whose cursor grows, or every change out of Postgres' own log.

    Types become Arrow types: numbers, texts, bytes, dates and times as they are, `numeric(p,s)` a decimal, arrays lists. What Arrow has no
    word for is text as Postgres writes it: uuid, json, intervals, enums, times of day, and `numeric` without a precision. `types` chooses
    another one. Columns and types are found at the first start and pinned.

    A bounded read goes by ranges of the primary key, side by side; each is read as of its own moment, so rows may change in between.
    `incremental` asks for rows beyond the last pair of cursor and key, so that rows with equal cursors are neither lost nor read twice.
    `cdc` spools the changes of a replication slot in the checkpoint, whole transactions at a time; the slot advances once the rows are
    committed in every sink.
    """

    type: ClassVar[str] = "postgres"
    summary: ClassVar[str] = "Read a table of Postgres, or its changes."
    extra: ClassVar[str] = "postgres"
    connects: ClassVar[bool] = True
    example: ClassVar[str] = """
        orders:
          type: postgres
          host: localhost
          database: shop
          user: app
          password: secret://env/PGPASSWORD
          table: public.orders
          mode: {type: cdc, slot: millstream_orders}
    """
    adjustable: ClassVar[frozenset[str]] = frozenset(
        {"host", "port", "user", "password", "sslmode", "ssl_root_cert", "ssl_cert", "ssl_key", "connect_timeout", "statement_timeout"}
        | {"poll_interval", "max_rows_per_epoch", "partitions", "unchanged", "truncate", "on_schema_change"}
    )

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found = [] if self.database else [Problem("MS007", "`database` is missing", "database", "give it here or in the connection")]
        try:
            split(self.relation)
        except ValueError as error:
            found.append(Problem("MS008", str(error), "table"))
        if self.max_rows_per_epoch and not self.bounded:
            found.append(Problem("MS008", "`max_rows_per_epoch` goes with `mode: {type: bounded}`", "max_rows_per_epoch"))
        return [*found, *(_changes_problems(self.mode, self.where) if isinstance(self.mode, CdcMode) else ())]

    @property
    def bounded(self) -> bool:
        return isinstance(self.mode, BoundedMode)

    @property
    def self_ending(self) -> bool:
        """Spark's available-now trigger takes one epoch from a Python source."""
        return self.max_rows_per_epoch is None

    @property
    def at_once(self) -> bool:
        return True

    @property
    def deterministic(self) -> bool:
        return isinstance(self.mode, CdcMode)

    @property
    def rereads(self) -> bool:
        return not isinstance(self.mode, CdcMode)  # a slot that has gone on forgets what lies before

    @property
    def poll_interval_ms(self) -> int:
        return 0 if self.bounded else self.poll_interval.milliseconds

    def discover(self, spark: SparkSession, context: NodeContext) -> pa.Schema:
        return self._schema(self._look())

    @property
    def previews(self) -> bool:
        return True

    def preview(self, context: NodeContext) -> pa.Schema | None:
        return self._schema(self._look(address=self._address().to(connect_timeout="2")))

    def key_columns(self, context: NodeContext) -> tuple[str, ...]:
        table = self._there()
        return table.identity if isinstance(self.mode, CdcMode) else table.primary

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        feed, schema = self._feed(spark, context)
        frame = stream(spark, feed, schema, context.name)
        return frame.selectExpr("*", _NO_REJECT) if context.isolate else frame

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        table = self._look()
        with connected(self._address()) as connection:
            key = self._key(table, context)
            bounds = cut(connection, table, key, None, self._side_by_side(spark))
        return stream(spark, Snapshot(self._address(), table, key, bounds, self.where), table.arrow, context.name, streaming=False)

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        bounds = pinned(context.storage) if context is not None and self.bounded else None
        return bounds is not None and int(_parsed(offset)["range"]) >= len(bounds)

    def reached(self, several: Sequence[Any]) -> Any:
        if not isinstance(self.mode, CdcMode):
            return super().reached(several)
        return min(several, key=lambda offset: int(_parsed(offset)["chunk"]))

    def committed(self, spark: SparkSession, offset: Any, context: NodeContext) -> None:
        """Let the slot go on, then forget what was spooled."""
        if not isinstance(self.mode, CdcMode):
            return
        number, start = int(_parsed(offset)["chunk"]), started(context.storage)
        if number and start is not None:
            end = Spool(context.storage).chunk(number).end
            advance(reading(self, read_only=False), Names(start.slot, start.publication, "", ""), end)
            forget(context.storage, number)

    def _schema(self, table: Table) -> pa.Schema:
        return changed_schema(table) if isinstance(self.mode, CdcMode) else table.arrow

    def _feed(self, spark: SparkSession, context: NodeContext) -> tuple[Feed, pa.Schema]:
        table = self._look(context)
        if isinstance(self.mode, CdcMode):
            return following(self, self.mode, table, context), changed_schema(table)
        if isinstance(self.mode, IncrementalMode):
            delay = self.mode.delay.seconds if self.mode.delay else 0
            pair = pair_of(table, self.mode.cursor, self._key(table, context), bool(delay))
            return Incremental(self._address(), table, pair, self.where, delay, self._side_by_side(spark)), table.arrow
        return self._ranges(spark, context, table), table.arrow

    def _ranges(self, spark: SparkSession, context: NodeContext, table: Table) -> Snapshot:
        side_by_side, key = self._side_by_side(spark), self._key(table, context)
        size = ceil(self.max_rows_per_epoch / side_by_side) if self.max_rows_per_epoch else None
        with connected(self._address()) as connection:
            bounds = pin(context.storage, connection, table, key, size, side_by_side)
        step = side_by_side if self.max_rows_per_epoch else None
        return Snapshot(self._address(), table, key, bounds, self.where, context.storage.url, step)

    def _key(self, table: Table, context: NodeContext) -> Key | None:
        return key_of(table, table.primary or context.primary_key)

    def _side_by_side(self, spark: SparkSession) -> int:
        return self.partitions or int(spark.sparkContext.defaultParallelism)

    def _address(self) -> Address:
        return reading(self)

    def _there(self, address: Address | None = None) -> Table:
        with connected(address or self._address()) as connection:
            return look(connection, self.relation)

    def _look(self, context: NodeContext | None = None, address: Address | None = None) -> Table:
        """The table as it is now, with the columns that the source has: those that are pinned, once they are."""
        table = self._there(address)
        if context is not None and context.schema is not None:
            return table.kept(context.schema, isinstance(self.mode, CdcMode) and self.on_schema_change == "ignore")
        chosen = table.chosen(self.columns, {name: types.parse(kind) for name, kind in self.types.items()})
        return published(chosen) if isinstance(self.mode, CdcMode) else chosen


def _changes_problems(mode: CdcMode, where: str) -> list[Problem]:
    found = []
    if mode.slot and not re.fullmatch(r"[a-z0-9_]{1,63}", mode.slot):
        found.append(Problem("MS008", f"`{mode.slot}` cannot be a slot: up to 63 of a-z, 0-9 and _", "mode"))
    if len(mode.publication.encode()) > NAME_BYTES:
        found.append(Problem("MS008", f"a publication's name has at most {NAME_BYTES} bytes", "mode"))
    if where:
        found.append(Problem("MS008", "`where` does not go with `cdc`", "where", "put a `filter` below the source"))
    return found


def _parsed(offset: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offset) if isinstance(offset, str) else offset
    return found
