"""A table outside of the pipeline in which SQL looks up rows. It can be edited at any time, without a restart."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, PrivateAttr

from millstream.errors import nearest
from millstream.lookups.keys import can_be_key
from millstream.lookups.options import TableCache, TablePlace, place_of, place_problems
from millstream.lookups.table import TableSpec
from millstream.plan import types
from millstream.plan.components import NamesInputs, NodeContext, Problem, Transform, TransformRun
from millstream.plan.lookup_tables import LookupTable
from millstream.plan.options import SchemaMap, TypeName
from millstream.transforms.sql import Sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.lookups.backends.memory import TableServer


class DynamicTable(NamesInputs, TablePlace, Transform):
    """A lookup table that no rows flow through: SQL queries it, once per Arrow batch.

    `dynamic_table_check('t', value)` returns whether a value, or any element of an array, is a key of it; `dynamic_table_get('t', key)`
    returns the row of a key as a struct; `LEFT JOIN t ON o.column = t.key` and `JOIN` add its columns. The table is created if missing.
    Anyone may edit it while the pipeline runs (`millstream table put`, `psql`, `redis-cli`): without `cache` a change applies from the next
    epoch, with it after `cache.ttl` at the latest. With `sql` the stream itself fills it.
    """

    type: ClassVar[str] = "dynamic_table"
    summary: ClassVar[str] = "A table to look rows up in, edited while the pipeline runs."
    example: ClassVar[str] = """
        watched:
          type: dynamic_table
          backend: sqlite
          path: watched.db
          key: user_id
          columns: {tier: string}
    """
    arity: ClassVar[tuple[int, int | None]] = (0, 1)
    connects: ClassVar[bool] = True
    adjustable: ClassVar[frozenset[str]] = frozenset({*TablePlace.model_fields, "schema", "cache", "table", "backend"})

    backend: Literal["memory", "sqlite", "postgres", "redis"]
    """Where it is: a `memory` table exists only during one run; the others are persistent."""
    table: str = ""
    """Its name in the database; for Redis the prefix of its keys. Default: the node's name."""
    key: str = "key"
    """The key column."""
    key_type: TypeName | None = None
    """The key's type: a string, an integer or a date. Default: the table's own; `string` for a table that is created."""
    columns: SchemaMap = Field(default_factory=dict)
    """Column → type of the other columns of a row. Default: none, the table is a set."""
    time_column: str = "updated_at"
    """The column with the time of a row's last write."""
    cache: TableCache | None = None
    """What workers cache. Default: nothing."""
    sql: str | None = None
    """A `SELECT` over one node that fills the table: its rows are written by key, before the sinks of the same epoch run. Rows with a
    null key are left out; a row with `_op` = `d` removes its key."""
    _tables: dict[str, LookupTable] = PrivateAttr(default_factory=dict)

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        return str(options.get("backend", cls.type))

    def extras(self) -> tuple[str, ...]:
        return (self.backend,) if self.backend in {"postgres", "redis"} else ()

    @property
    def query(self) -> Sql | None:
        """The query that fills it."""
        return Sql(sql=self.sql).with_tables(self._tables) if self.sql else None

    @property
    def deterministic(self) -> bool:
        return self.query is None or self.query.deterministic

    @property
    def lookup_names(self) -> tuple[str, ...]:
        return self.query.lookup_names if self.query else ()

    def tables(self) -> tuple[str, ...]:
        return self.query.tables() if self.query else ()

    def lookup_table(self, name: str) -> LookupTable:
        kind = types.parse(self.key_type) if self.key_type else types.UNKNOWN
        return LookupTable(name, self.key, kind, types.schema(self.columns), self)

    def with_tables(self, tables: Mapping[str, LookupTable]) -> Self:
        if self.sql is None:
            return self
        copy = self.model_copy()
        copy._tables = {name: table for name, table in tables.items() if table.component is not self}
        return copy

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema:
        return self.lookup_table("").schema

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        names = {"key": self.key, "time_column": self.time_column} | {f"columns.{name}": name for name in self.columns}
        optional = {"table": self.table, "schema": self.namespace}
        found = place_problems(self, self.backend, names | {field: name for field, name in optional.items() if name})
        found += [Problem("MS134", f"`{name}` is both the key and a column", "columns") for name in self.columns if name == self.key]
        nested = [name for name, kind in self.columns.items() if pa.types.is_nested(types.parse(kind))]
        found += [Problem("MS134", f"column `{name}` holds more than one value", f"columns.{name}", "plain types only") for name in nested]
        if self.key_type and not can_be_key(types.parse(self.key_type)):
            found.append(Problem("MS134", f"a key cannot be of type `{self.key_type}`", "key_type", "take a string, an integer or a date"))
        if self.cache and self.cache.refresh and self.backend in {"redis", "memory"}:
            found.append(Problem("MS134", f"`{self.backend}` cannot tell which rows have changed", "cache.refresh", "set a shorter `ttl`"))
        return found + (self._query_problems(inputs, directory) if self.query else [])

    def _query_problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        assert self.query is not None
        if self.query.stateful:
            return [Problem("MS134", "a table cannot be filled by an aggregate", "sql", "aggregate in a separate node")]
        found, result = self.query.problems(inputs, directory), self.query.output(inputs)
        missing = [name for name in (self.key, *self.columns) if result is not None and name not in result.names]
        alone = result is not None and len(result.names) == 1 and not self.columns
        if not found and missing and not alone and result is not None:
            found.append(Problem("MS134", f"the query returns no column `{missing[0]}`", "sql", nearest(missing[0], result.names)))
        return found

    def spec(self, name: str, directory: Path, place: str = "", secret: bytes = b"") -> TableSpec:
        """The table's description for a worker. `place` and `secret` are for a table in memory."""
        address, outside = place_of(self, self.backend, directory)
        kinds = {column: types.parse(kind) for column, kind in self.columns.items()}
        kinds |= {self.key: types.parse(self.key_type)} if self.key_type else {}
        return TableSpec(
            name,
            self.backend,
            self.table or name,
            (self.key,),
            tuple(self.columns),
            kinds,
            (self.namespace or "public") if self.backend == "postgres" else "",
            self.time_column,
            address,
            place or outside,
            secret,
            cache=self.cache.spec() if self.cache else None,
        )

    def open(self, context: NodeContext) -> DynamicTableRun:
        return DynamicTableRun(self, context)


class DynamicTableRun(TransformRun):
    """The table of one run: opened once, and filled by the stream if it has a query."""

    def __init__(self, table: DynamicTable, context: NodeContext) -> None:
        super().__init__(table, context)
        self.table = table
        self._query = table.query.open(context) if table.query else None
        self._server: TableServer | None = None
        self._found: tuple[TableSpec, pa.Schema] | None = None
        self._lock = threading.Lock()
        """One query fills the table while others look up rows in it, each in its own thread."""

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        assert self._query is not None
        return self._query.apply(frames, context)

    def resolve(self) -> tuple[TableSpec, pa.Schema]:
        """The table's location and schema, found once in a run."""
        from millstream.lookups.sql_functions import ensure

        with self._lock:
            if self._found is None:
                spec = replace(self._spec(), owned=not self.context.dry)
                self._found = spec, ensure(spec, self.context.dry)
            return self._found

    def fill(self, frame: DataFrame) -> int:
        from millstream.lookups.fill import fill

        return fill(self.table.lookup_table(self.context.name), self.resolve(), frame)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def _spec(self) -> TableSpec:
        """A table in memory uses the address at which workers reach the driver."""
        from pyspark import SparkContext

        from millstream.lookups.backends.memory import TableServer

        if self.table.backend != "memory":
            return self.table.spec(self.context.name, self.context.directory)
        running = SparkContext._active_spark_context
        self._server = TableServer(running.getConf().get("spark.driver.host", "127.0.0.1") if running else "127.0.0.1")
        return self.table.spec(self.context.name, self.context.directory, self._server.place, self._server.secret)
