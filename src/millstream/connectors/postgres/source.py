"""Postgres as a source: a table once, a table by a cursor, or every change of a table.

Each mode is an `ArrowReader` (`read/`): offsets, and parts that workers read as Arrow batches. The driver examines the table first, so that
mistakes are reported before anything starts. Decisions that must not change later (ranges of keys, the start of the changes) are pinned in
the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from millstream.clients.postgres import NAME_BYTES, Address, open_connection
from millstream.connectors.postgres.read.catalog import TableInfo, look, reading_address, split_name
from millstream.connectors.postgres.read.cdc_start import start_changes
from millstream.connectors.postgres.read.changes import changed_schema, pinned_start, published_columns
from millstream.connectors.postgres.read.incremental import Incremental, pair_of
from millstream.connectors.postgres.read.options import BoundedMode, CdcMode, IncrementalMode, PostgresSourceOptions
from millstream.connectors.postgres.read.slots import Names, advance
from millstream.connectors.postgres.read.snapshot import Key, TableSnapshot, find_ranges, key_of, pin, pinned_ranges
from millstream.connectors.postgres.read.spool import Spool, forget
from millstream.jvm.arrow_source import ArrowReader, arrow_frame
from millstream.plan import types
from millstream.plan.components import Dataset, NodeContext, Problem
from millstream.plan.components.arrow import ArrowSource, ArrowSourceRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PostgresSource(PostgresSourceOptions, ArrowSource):
    """Reads a table of Postgres: all current rows, rows whose cursor grows, or every change from Postgres' own log.

    Types become Arrow types: numbers, texts, bytes, dates and times unchanged, `numeric(p,s)` a decimal, arrays lists. Types that Arrow
    does not have become text in Postgres' form: uuid, json, intervals, enums, times of day, and `numeric` without a precision. `types`
    selects another one. Columns and types are found at the first start and pinned.
    A bounded read uses ranges of the primary key, in parallel; each is read as of its own time, so rows may change in between.
    `incremental` reads rows after the last pair of cursor and key, so that rows with equal cursors are neither lost nor read twice. `cdc`
    spools the changes of a replication slot in the checkpoint, whole transactions at a time; the slot advances when the rows are committed
    in every sink.
    """

    type: ClassVar[str] = "postgres"
    readable_as_table: ClassVar[bool] = True
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
            split_name(self.relation)
        except ValueError as error:
            found.append(Problem("MS008", str(error), "table"))
        if self.max_rows_per_epoch and not self.bounded:
            found.append(Problem("MS008", "`max_rows_per_epoch` needs `mode: {type: bounded}`", "max_rows_per_epoch"))
        return [*found, *(_changes_problems(self.mode, self.where) if isinstance(self.mode, CdcMode) else ())]

    @property
    def bounded(self) -> bool:
        return isinstance(self.mode, BoundedMode)

    @property
    def available_now(self) -> bool:
        """Spark's available-now trigger reads one epoch from a Python source."""
        return self.max_rows_per_epoch is None

    @property
    def deterministic(self) -> bool:
        return isinstance(self.mode, CdcMode)

    @property
    def emits_changes(self) -> bool:
        return isinstance(self.mode, CdcMode)

    @property
    def rereads(self) -> bool:
        return not isinstance(self.mode, CdcMode)  # an advanced slot no longer has earlier changes

    @property
    def poll_interval_ms(self) -> int:
        return 0 if self.bounded else self.poll_interval.milliseconds

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_table("postgres", f"{self.host}:{self.port}", self.database, self.relation.replace('"', "")),)

    def open(self, context: NodeContext) -> PostgresSourceRun:
        return PostgresSourceRun(self, context)


class PostgresSourceRun(ArrowSourceRun):
    """Examines the table, pins decisions, and reads in the mode of `mode`."""

    def __init__(self, source: PostgresSource, context: NodeContext) -> None:
        super().__init__(source, context)
        self.source = source

    def discover(self, spark: SparkSession) -> pa.Schema:
        return self._schema(self._look())

    def preview(self) -> pa.Schema | None:
        return self._schema(self._look(self._address.to(connect_timeout="2")))

    def key_columns(self) -> tuple[str, ...]:
        table = self._require_table()
        return table.identity if self._follows else table.primary

    def open_reader(self, spark: SparkSession) -> tuple[ArrowReader, pa.Schema]:
        source, table = self.source, self._with_pinned_columns(self._require_table())
        if isinstance(source.mode, CdcMode):
            return start_changes(source, source.mode, table, self.context), changed_schema(table)
        if isinstance(source.mode, IncrementalMode):
            delay = source.mode.delay.seconds if source.mode.delay else 0
            pair = pair_of(table, source.mode.cursor, self._key(table), bool(delay))
            return Incremental(self._address, table, pair, source.where, delay, self._side_by_side(spark)), table.arrow
        return self._ranges(spark, table), table.arrow

    def table(self, spark: SparkSession) -> DataFrame:
        table = self._look()
        with open_connection(self._address) as connection:
            key = self._key(table)
            bounds = find_ranges(connection, table, key, None, self._side_by_side(spark))
        reader = TableSnapshot(self._address, table, key, bounds, self.source.where)
        return arrow_frame(spark, reader, table.arrow, self.context.name, self.context.directory, streaming=False)

    def is_exhausted(self, offset: Any) -> bool:
        bounds = pinned_ranges(self.context.storage) if self.source.bounded else None
        return bounds is not None and int(_parse_offset(offset)["range"]) >= len(bounds)

    def common_offset(self, several: Sequence[Any]) -> Any:
        return min(several, key=lambda offset: int(_parse_offset(offset)["chunk"])) if self._follows else None

    def on_commit(self, spark: SparkSession, offset: Any) -> None:
        """Advance the slot, then delete the spooled rows."""
        storage = self.context.storage
        number, start = int(_parse_offset(offset)["chunk"]), pinned_start(storage)
        if number and start is not None:
            end = Spool(storage).chunk(number).end
            advance(reading_address(self.source, read_only=False), Names(start.slot, start.publication, "", ""), end)
            forget(storage, number)

    @property
    def _follows(self) -> bool:
        return isinstance(self.source.mode, CdcMode)

    def _schema(self, table: TableInfo) -> pa.Schema:
        return changed_schema(table) if self._follows else table.arrow

    def _ranges(self, spark: SparkSession, table: TableInfo) -> TableSnapshot:
        limit, side_by_side, key = self.source.max_rows_per_epoch, self._side_by_side(spark), self._key(table)
        size = ceil(limit / side_by_side) if limit else None
        with open_connection(self._address) as connection:
            bounds = pin(self.context.storage, connection, table, key, size, side_by_side)
        step = side_by_side if limit else None
        return TableSnapshot(self._address, table, key, bounds, self.source.where, self.context.storage.url, step)

    def _key(self, table: TableInfo) -> Key | None:
        return key_of(table, table.primary or self.context.primary_key)

    def _side_by_side(self, spark: SparkSession) -> int:
        return self.source.partitions or int(spark.sparkContext.defaultParallelism)

    @property
    def _address(self) -> Address:
        return reading_address(self.source)

    def _require_table(self, address: Address | None = None) -> TableInfo:
        with open_connection(address or self._address) as connection:
            return look(connection, self.source.relation)

    def _look(self, address: Address | None = None) -> TableInfo:
        """The current table, with the columns that the options select."""
        return self._with_columns(self._require_table(address))

    def _with_columns(self, table: TableInfo) -> TableInfo:
        chosen = table.with_columns(self.source.columns, {name: types.parse(kind) for name, kind in self.source.types.items()})
        return published_columns(chosen) if self._follows else chosen

    def _with_pinned_columns(self, table: TableInfo) -> TableInfo:
        """The current table, with the pinned columns, once there are any."""
        if self.context.schema is None:
            return self._with_columns(table)
        return table.with_pinned_columns(self.context.schema, self._follows and self.source.on_schema_change == "ignore")


def _changes_problems(mode: CdcMode, where: str) -> list[Problem]:
    found = []
    if mode.slot and not re.fullmatch(r"[a-z0-9_]{1,63}", mode.slot):
        found.append(Problem("MS008", f"`{mode.slot}` cannot be a slot: up to 63 of a-z, 0-9 and _", "mode"))
    if len(mode.publication.encode()) > NAME_BYTES:
        found.append(Problem("MS008", f"a publication's name has at most {NAME_BYTES} bytes", "mode"))
    if where:
        found.append(Problem("MS008", "`where` does not go with `cdc`", "where", "put a `filter` below the source"))
    return found


def _parse_offset(offset: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offset) if isinstance(offset, str) else offset
    return found
