"""Aggregates of a stream, kept in a Postgres table: exactly once, and right for updates and deletes too.

The rows of an epoch are staged as in the sink `postgres`; the transaction that commits them moves the aggregate (`writing/aggregating.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from millstream.clients.postgres import connected, quoted
from millstream.connectors.postgres.writing.aggregating import ROWS, Aggregation, Function, Measure
from millstream.connectors.postgres.writing.columns import Column, columns_of
from millstream.connectors.postgres.writing.delivering import PostgresDelivery
from millstream.connectors.postgres.writing.options import Name, type_name
from millstream.connectors.postgres.writing.target import Target, Wanted, fitting, listed
from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.changelog import op_of
from millstream.plan.components import Epoch, NodeContext, Problem, Staged

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame

Type = Annotated[str, AfterValidator(type_name)]


class Group(BaseModel):
    """A column that rows are grouped by."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    source: str = Field(default="", alias="from")
    """The column of the rows. Default: the one of the same name."""
    kind: Type | None = Field(default=None, alias="type")
    """Its type in the table. Default: that of the rows."""


class Total(BaseModel):
    """A column that rows are added up in."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    fn: Function
    """`sum`, `count`, `avg`, `min` or `max`."""
    source: str = Field(default="", alias="from")
    """The column that is added up; `count` without one counts rows."""
    kind: Type | None = Field(default=None, alias="type")
    """Its type in the table. Default: `numeric` for sums and averages, `bigint` for counts, that of the rows for extremes."""


def _groups(value: Any) -> Any:
    """`[user, day]` is `{user: {}, day: {}}`."""
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return {str(name): {} for name in names} if isinstance(names, list | tuple) else value


class PostgresAggregateSink(PostgresDelivery):
    """Keeps sums, counts, averages, minima and maxima per group in a table of Postgres. With a primary key an update takes back what the
    row was worth before, and a delete takes it away: the table always equals the aggregate over the current rows.

    The current row of each key is kept in the landing table. Without a key, or with `deduplicate: false`, every row counts by itself: a
    delete takes its own values away, and extremes only ever grow. A group without rows disappears. The sum of nothing is 0; an average
    comes with the columns `<name>_sum` and `<name>_count`. Without `group_by` there is one row.
    """

    type: ClassVar[str] = "postgres_aggregate"
    summary: ClassVar[str] = "Keep aggregates per group in a Postgres table, exactly once, updates and deletes included."
    example: ClassVar[str] = """
        pg.balances:
          type: postgres_aggregate
          from: transfers
          host: localhost
          database: app
          user: app
          password: secret://env/PGPASSWORD
          primary_key: id
          landing_table: transfers_landing
          agg_table: balances
          group_by: {account: {from: owner}}
          aggregate: {balance: {from: amount, fn: sum}, transfers: {fn: count}}
    """

    landing_table: Name
    """The table of the current rows."""
    agg_table: Name
    """The table of the aggregates."""
    group_by: Annotated[dict[Name, Group], BeforeValidator(_groups, json_schema_input_type=dict[str, Group] | list[str] | str)] = Field(
        default={}
    )
    """Column of the table → `{from: column of the rows, type: …}`; or a list of columns."""
    aggregate: Annotated[dict[Name, Total], Field(min_length=1)]
    """Column of the table → `{fn: sum, from: column of the rows, type: …}`."""

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found = self.missing()
        for name, total in self.aggregate.items():
            if total.fn != "count" and not total.source:
                found.append(Problem("MS007", f"`{total.fn}` in `{name}` needs `from`, the column that is added up", f"aggregate.{name}"))
            if name in self.group_by:
                found.append(Problem("MS020", f"`{name}` is a group and an aggregate at once", f"aggregate.{name}"))
        schema = next(iter(inputs.values()), None)
        named = {f"group_by.{name}": group.source or name for name, group in self.group_by.items()}
        named |= {f"aggregate.{name}": total.source for name, total in self.aggregate.items() if total.source}
        known: list[str] = schema.names if schema is not None else [*named.values()]
        unknown = [(place, column) for place, column in named.items() if column not in known]
        found += [Problem("MS024", f"unknown column `{column}`", place, nearest(column, known)) for place, column in unknown]
        return found

    def collapses(self, columns: Iterable[str], context: NodeContext) -> tuple[str, ...]:
        key = self._key(context)
        if op_of(columns) and not key and self.deduplicate:
            message = f"sink `{context.name}` receives a changelog, and its rows have no primary key"
            raise RunError(Diagnostic("MS118", message, help="add `primary_key: COLUMN`; or `deduplicate: false` for deltas"))
        return key

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        assert epoch.context is not None
        key, op = self._key(epoch.context), op_of(frame.columns)
        needed = {*key, *(group.source or name for name, group in self.group_by.items()), *(t.source for t in self.aggregate.values())}
        known = {column.name: column for column in columns_of(frame, "json", {})}
        landed = tuple(known[name] for name in frame.columns if name in needed)
        aggregation = self._aggregation(landed, key, op, epoch.context)
        return self.staged(frame, (*landed, *([known[op]] if op else [])), key, epoch, aggregation.statements)

    def _key(self, context: NodeContext) -> tuple[str, ...]:
        return context.primary_key if self.deduplicate else ()

    def _aggregation(self, columns: tuple[Column, ...], key: tuple[str, ...], op: str, context: NodeContext) -> Aggregation:
        """Both tables; looked at once per run."""
        memory = context.memory
        if "landing" not in memory:
            sources = tuple(group.source or name for name, group in self.group_by.items())
            wanted = Wanted(self.db_schema, self.landing_table, key, self.create, "add_columns", sources)
            with connected(self.address()) as connection:
                landing = fitting(connection, wanted, columns, bool(memory.get("held")))
                self._create(connection, landing)
            memory["landing"] = landing
        landing = memory["landing"]
        groups = {name: group.source or name for name, group in self.group_by.items()}
        return Aggregation(landing, columns, quoted(self.db_schema, self.agg_table), groups, self._measures(landing), op)

    def _measures(self, landing: Target) -> tuple[Measure, ...]:
        def kind(total: Total) -> str:
            plain = "bigint" if total.fn == "count" else "numeric" if total.fn in {"sum", "avg"} else landing.columns[total.source]
            return total.kind or plain

        return tuple(Measure(name, total.fn, total.source, kind(total)) for name, total in self.aggregate.items())

    def _create(self, connection: psycopg.Connection[Any], landing: Target) -> None:
        """The aggregate's table. Nulls are a group like any other, where the server can say so (since version 15)."""
        columns = {name: group.kind or landing.columns[group.source or name] for name, group in self.group_by.items()}
        columns |= {} if self.group_by else {"key": "text DEFAULT 'all'"}
        columns |= {ROWS: "bigint NOT NULL", **{name: kind for measure in self._measures(landing) for name, kind in measure.stored.items()}}
        name = quoted(self.db_schema, self.agg_table)
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
            return
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{quoted(column)} {kind}' for column, kind in columns.items())})")
        key = listed(tuple(self.group_by) or ("key",))
        nulls = " NULLS NOT DISTINCT" if connection.info.server_version >= 150000 else ""
        connection.execute(f"CREATE UNIQUE INDEX ON {name} ({key}){nulls}")
