"""A table outside of the pipeline that SQL looks rows up in, changed at any time by anyone, without a restart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field, PrivateAttr

from millstream.errors import nearest
from millstream.plan import types
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.options import SchemaMap, TypeName
from millstream.plan.tables import LookupTable
from millstream.state.tables.keys import can_be_key
from millstream.state.tables.spec import TableSpec
from millstream.transforms.sql import Sql
from millstream.transforms.tableoptions import TableCache, TablePlace, place_of, place_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DynamicTable(TablePlace, Transform):
    """A lookup table that no rows flow through: SQL asks it, one question per Arrow batch.

    `dynamic_table_check('t', value)` tells whether a value, or any element of an array, is a key of it; `dynamic_table_get('t', key)` gives
    the row of a key as a struct; `LEFT JOIN t ON o.column = t.key` and `JOIN` give its columns. The table is made when it is missing.
    Anyone may edit it while the pipeline runs (`millstream table put`, `psql`, `redis-cli`): without `cache` a change counts from the
    next epoch on, with it after `cache.ttl` at the latest. With `sql` the stream itself fills it.
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
    """Where it is: `memory` belongs to one run and is gone with it; the others outlive it."""
    table: str = ""
    """Its name in the database; for Redis the first part of its keys. Default: the node's name."""
    key: str = "key"
    """The column that rows are looked up by."""
    key_type: TypeName | None = None
    """The key's type: a string, an integer or a date. Default: what the table has; `string` for a table that is made."""
    columns: SchemaMap = Field(default_factory=dict)
    """Column → type of what a row holds beside its key. Default: nothing, the table is a set."""
    time_column: str = "updated_at"
    """The column that says when a row was written last."""
    cache: TableCache | None = None
    """What workers remember. Default: nothing."""
    sql: str | None = None
    """A `SELECT` over one node that fills the table: its rows are put by key, before the sinks of the same epoch get theirs. Rows with a
    null key are left out; a row with `_op` = `d` removes its key."""
    _tables: dict[str, LookupTable] = PrivateAttr(default_factory=dict)

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        return str(options.get("backend", cls.type))

    def extras(self) -> tuple[str, ...]:
        return (self.backend,) if self.backend in {"postgres", "redis"} else ()

    @property
    def query(self) -> Sql | None:
        """What fills it."""
        return Sql(sql=self.sql).bound(self._tables) if self.sql else None

    @property
    def deterministic(self) -> bool:
        return self.query is None or self.query.deterministic

    @property
    def looks_into(self) -> tuple[str, ...]:
        return self.query.looks_into if self.query else ()

    def tables(self) -> tuple[str, ...]:
        return self.query.tables() if self.query else ()

    def lookup_table(self, name: str) -> LookupTable:
        kind = types.parse(self.key_type) if self.key_type else types.UNKNOWN
        return LookupTable(name, self.key, kind, types.schema(self.columns), self)

    def bound(self, tables: Mapping[str, LookupTable]) -> DynamicTable:
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
        return found + (self._filling_problems(inputs, directory) if self.query else [])

    def _filling_problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        assert self.query is not None
        if self.query.stateful:
            return [Problem("MS134", "a table is filled row by row, not by an aggregate", "sql", "aggregate in a node of its own")]
        found, result = self.query.problems(inputs, directory), self.query.output(inputs)
        missing = [name for name in (self.key, *self.columns) if result is not None and name not in result.names]
        alone = result is not None and len(result.names) == 1 and not self.columns
        if not found and missing and not alone and result is not None:
            found.append(Problem("MS134", f"the query gives no column `{missing[0]}`", "sql", nearest(missing[0], result.names)))
        return found

    def spec(self, name: str, context: NodeContext) -> TableSpec:
        """All that a worker needs."""
        address, place = place_of(self, self.backend, context.directory)
        kinds = {column: types.parse(kind) for column, kind in self.columns.items()}
        kinds |= {self.key: types.parse(self.key_type)} if self.key_type else {}
        secret = b""
        if self.backend == "memory":
            place, secret = _home(context)
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
            place,
            secret,
            cache=self.cache.spec() if self.cache else None,
        )

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        assert self.query is not None
        return self.query.apply(frames, context)

    def fill(self, frame: DataFrame, context: NodeContext) -> int:
        from millstream.transforms.filling import fill

        return fill(self.lookup_table(context.name), frame, context)


def _home(context: NodeContext) -> tuple[str, bytes]:
    """Where the run keeps its tables in memory: at the address by which workers reach the driver anyway."""
    from pyspark import SparkContext

    from millstream.state.tables.memory import Home

    if "home" not in context.shared:
        running = SparkContext._active_spark_context
        context.shared["home"] = Home(running.getConf().get("spark.driver.host", "127.0.0.1") if running else "127.0.0.1")
    home: Home = context.shared["home"]
    return home.place, home.secret
