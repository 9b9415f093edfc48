"""Enriches rows from a database by key, in whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BeforeValidator, Field, WithJsonSchema

from millstream.errors import nearest
from millstream.lookups.options import TableCache, TablePlace, place_of, place_problems
from millstream.lookups.table import TableSpec
from millstream.plan import types
from millstream.plan.components import REJECT, NodeContext, Problem, Transform, TransformRun
from millstream.plan.error_policy import DeadLetter, OnError
from millstream.sql.expressions import only_schema

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from millstream.lookups.enrichment import Counts


def _as_map(value: Any) -> Any:
    """`[name, country]` and `name, country` become maps to themselves."""
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return {name: name for name in names} if isinstance(names, list | tuple) else names


def _as_word(value: Any) -> Any:
    """YAML reads a bare `null` as None."""
    return "null" if value is None else value


_TEXT: dict[str, Any] = {"type": "string"}
_SHAPES: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}, {"type": "object", "additionalProperties": _TEXT}]}
Selection = Annotated[dict[str, str], BeforeValidator(_as_map), WithJsonSchema(_SHAPES)]
OnMissing = Annotated[Literal["null", "fail", "drop"] | DeadLetter, BeforeValidator(_as_word)]


class Lookup(TablePlace, Transform):
    """Looks up every row in a table of a database and adds columns: Postgres, SQLite or DuckDB. A batch of rows is one query with its
    distinct keys, `concurrency` of them at a time. The key should be unique: of several rows one is used.

    The run's report counts `hits` and `misses`.
    """

    type: ClassVar[str] = "lookup"
    summary: ClassVar[str] = "Add columns from a database by key."
    example: ClassVar[str] = """
        named:
          type: lookup
          from: orders
          backend: sqlite
          path: shop.db
          table: users
          on: {user_id: id}
          select: [name, country]
          cache: {ttl: 5m}
    """
    expensive: ClassVar[bool] = True
    connects: ClassVar[bool] = True
    adjustable: ClassVar[frozenset[str]] = frozenset({*TablePlace.model_fields, "cache", "concurrency"})

    backend: Literal["postgres", "sqlite", "duckdb"] = "postgres"
    """The database."""
    table: str
    """The table or view, with its schema in front where it has one: `public.users`."""
    on: dict[str, str] = Field(min_length=1)
    """Column of the rows → column of the table that must be equal. A row with a null in one of them has no match."""
    select: Selection = Field(min_length=1)
    """The table's columns that are added: `[name, country]`, or `{new_name: column}`."""
    on_missing: OnMissing = "null"
    """What happens to a row without a match: its new columns are `"null"`, the pipeline stops (`fail`), it is left out (`drop`), or it goes
    to a sink (`{dead_letter: SINK}`)."""
    cache: TableCache | None = None
    """What workers cache. Default: nothing."""
    concurrency: int = Field(1, ge=1, le=64)
    """How many batches of a task are looked up at a time, each with its own connection."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        return str(options.get("backend", "postgres"))

    def extras(self) -> tuple[str, ...]:
        return (self.backend,) if self.backend != "sqlite" else ()

    @property
    def deterministic(self) -> bool:
        return False

    @property
    def rebuilt_per_epoch(self) -> bool:
        return True

    @property
    def side_tables(self) -> tuple[str, ...]:
        return (f"{self.table} ({self.backend})",)

    @property
    def rejects(self) -> OnError | None:
        return self.on_missing if isinstance(self.on_missing, DeadLetter) else None

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return pa.schema([*schema, *(pa.field(name, types.UNKNOWN) for name in self.select)]) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        namespace, table = self._name()
        names = {"table": table} | {f"on.{name}": column for name, column in self.on.items()}
        names |= {f"select.{name}": column for name, column in self.select.items()} | ({"schema": namespace} if namespace else {})
        found, schema = place_problems(self, self.backend, names), only_schema(inputs)
        if self.cache and self.cache.refresh:
            found.append(Problem("MS134", "a lookup cannot find changed rows", "cache.refresh", "set a shorter `ttl`"))
        if schema is None:
            return found
        for name in self.on:
            if name not in schema.names:
                found.append(Problem("MS024", f"unknown column `{name}`", f"on.{name}", nearest(name, schema.names)))
        for name in self.select:
            if name in schema.names:
                help_ = f"`select: {{found_{name}: {self.select[name]}}}` gives it another name"
                found.append(Problem("MS134", f"the rows already have a column `{name}`", "select", help_))
        return found

    def spec(self, name: str, directory: Path) -> TableSpec:
        """The table's description for a worker."""
        address, place = place_of(self, self.backend, directory)
        namespace, table = self._name()
        columns = tuple(dict.fromkeys(column for column in self.select.values() if column not in self.on.values()))
        cache = self.cache.spec() if self.cache else None
        return TableSpec(
            name,
            self.backend,
            table,
            tuple(self.on.values()),
            columns,
            {},
            namespace,
            address=address,
            place=place,
            owned=False,
            cache=cache,
        )

    def open(self, context: NodeContext) -> LookupRun:
        return LookupRun(self, context)

    @property
    def missing(self) -> str:
        """What workers do with a row without a match."""
        return self.on_missing if isinstance(self.on_missing, str) else "reject"

    def _name(self) -> tuple[str, str]:
        """Schema and table; the table's name may contain a dot if the schema is given separately."""
        if self.namespace:
            return self.namespace, self.table
        first, dot, rest = self.table.partition(".")
        return (first, rest) if dot else ("public" if self.backend == "postgres" else "", first)


class LookupRun(TransformRun):
    """Opens the table once, and counts hits and misses."""

    def __init__(self, lookup: Lookup, context: NodeContext) -> None:
        super().__init__(lookup, context)
        self.lookup = lookup
        self._counter: Accumulator[Counts] | None = None

    @cached_property
    def _table(self) -> tuple[TableSpec, pa.Schema]:
        from millstream.lookups.table import open_store

        spec = self.lookup.spec(self.context.name, self.context.directory)
        store = open_store(spec)
        try:
            return spec, store.ensure()
        finally:
            store.close()

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructType

        from millstream.lookups.enrichment import LookupRunner
        from millstream.worker.batches import REJECT_TYPE

        (frame,), lookup = frames.values(), self.lookup
        spec, schema = self._table
        added = pa.schema([pa.field(name, schema.field(column).type) for name, column in lookup.select.items()])
        runner = LookupRunner(
            spec,
            schema,
            tuple(lookup.on),
            tuple(lookup.select.items()),
            lookup.missing,
            context.isolate,
            lookup.concurrency,
            self._accumulator(frame.sparkSession),
        )
        columns = added.append(pa.field(REJECT, REJECT_TYPE)) if context.isolate else added
        produced = StructType([*frame.schema.fields, *from_arrow_schema(columns, prefer_timestamp_ntz=True).fields])
        return frame.mapInArrow(runner.run, produced)

    def take_counts(self) -> tuple[int, int] | None:
        if self._counter is None:
            return None
        counts = self._counter.value
        self._counter.value = {}
        return sum(hits for hits, _ in counts.values()), sum(misses for _, misses in counts.values())

    def _accumulator(self, spark: SparkSession) -> Accumulator[Counts]:
        from millstream.lookups.enrichment import Latest

        if self._counter is None:
            self._counter = spark.sparkContext.accumulator({}, Latest())  # type: ignore[arg-type]  # named after its methods
        return self._counter
