"""Aggregates of a stream in a Postgres table: exactly once, and correct for updates and deletes.

The rows of an epoch are staged as in the sink `postgres`; the transaction that commits them updates the aggregate (`write/aggregation.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from millstream.clients.postgres import open_connection, quote_name
from millstream.connectors.postgres.write.aggregation import ROWS, Aggregation, Function, Measure
from millstream.connectors.postgres.write.columns import StagedColumn, columns_of
from millstream.connectors.postgres.write.commit import Work
from millstream.connectors.postgres.write.delivery import PostgresDelivery, PostgresDeliveryRun
from millstream.connectors.postgres.write.options import Name, type_name
from millstream.connectors.postgres.write.target import TableTarget, Wanted, join_names, prepare_table
from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.changelog import op_of
from millstream.plan.components import Dataset, Epoch, NodeContext, Origins, Problem, Staged, of_expressions
from millstream.plan.expressions import quote_column

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
    """An aggregated column."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    fn: Function
    """`sum`, `count`, `avg`, `min` or `max`."""
    source: str = Field(default="", alias="from")
    """The column to aggregate; `count` without one counts rows."""
    kind: Type | None = Field(default=None, alias="type")
    """Its type in the table. Default: `numeric` for sums and averages, `bigint` for counts, that of the rows for extremes."""


def _groups(value: Any) -> Any:
    """`[user, day]` becomes `{user: {}, day: {}}`."""
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return {str(name): {} for name in names} if isinstance(names, list | tuple) else value


class PostgresAggregateSink(PostgresDelivery):
    """Keeps sums, counts, averages, minima and maxima per group in a table of Postgres. With a primary key an update subtracts the row's
    old values, and a delete removes them: the table always equals the aggregate over the current rows.

    The current row of each key is kept in the landing table. Without a key, or with `deduplicate: false`, every row counts separately: a
    delete subtracts its own values, and extremes never shrink. A group without rows is removed. The sum of nothing is 0; an average has the
    extra columns `<name>_sum` and `<name>_count`. Without `group_by` there is one row.
    """

    type: ClassVar[str] = "postgres_aggregate"
    summary: ClassVar[str] = "Keep aggregates per group in a Postgres table, exactly once, updates and deletes included."
    commit_method: ClassVar[str] = "as for `postgres`: one transaction for rows, groups and ledger"
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
                found.append(Problem("MS007", f"`{total.fn}` in `{name}` needs `from`, the column to aggregate", f"aggregate.{name}"))
            if name in self.group_by:
                found.append(Problem("MS020", f"`{name}` is both a group and an aggregate", f"aggregate.{name}"))
        schema = next(iter(inputs.values()), None)
        named = {f"group_by.{name}": group.source or name for name, group in self.group_by.items()}
        named |= {f"aggregate.{name}": total.source for name, total in self.aggregate.items() if total.source}
        known: list[str] = schema.names if schema is not None else [*named.values()]
        unknown = [(place, column) for place, column in named.items() if column not in known]
        found += [Problem("MS024", f"unknown column `{column}`", place, nearest(column, known)) for place, column in unknown]
        return found

    def takes_updates(self, key: tuple[str, ...]) -> bool:
        return bool(key) == self.deduplicate  # without a key every row counts: an update would not take its old row back

    @property
    def updates_help(self) -> str:
        return "" if self.deduplicate else "remove `deduplicate: false`"

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_table("postgres", f"{self.host}:{self.port}", self.database, self.db_schema, self.agg_table),)

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        keys = of_expressions({name: quote_column(group.source or name) for name, group in self.group_by.items()}, inputs)
        named = {name: quote_column(total.source) if total.source else "1" for name, total in self.aggregate.items()}
        totals = of_expressions(named, inputs, "AGGREGATION")
        return {**keys, **totals} if keys is not None and totals is not None else None

    def open(self, context: NodeContext) -> PostgresAggregateSinkRun:
        return PostgresAggregateSinkRun(self, context)


class PostgresAggregateSinkRun(PostgresDeliveryRun):
    """Keeps both tables' descriptions."""

    def __init__(self, sink: PostgresAggregateSink, context: NodeContext) -> None:
        super().__init__(sink, context)
        self.sink = sink
        self._landing: TableTarget | None = None

    def collapse_key(self, columns: Iterable[str]) -> tuple[str, ...]:
        key = self._key
        if op_of(columns) and not key and self.sink.deduplicate:
            message = f"sink `{self.context.name}` receives a changelog, but its rows have no primary key"
            raise RunError(Diagnostic("MS118", message, help="add `primary_key: COLUMN`; or `deduplicate: false` for deltas"))
        return key

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[Work]:
        key, op = self._key, op_of(frame.columns)
        needed = {
            *key,
            *(group.source or name for name, group in self.sink.group_by.items()),
            *(t.source for t in self.sink.aggregate.values()),
        }
        known = {column.name: column for column in columns_of(frame, "json", {})}
        landed = tuple(known[name] for name in frame.columns if name in needed)
        aggregation = self._aggregation(landed, key, op)
        return self.stage_columns(frame, (*landed, *([known[op]] if op else [])), key, epoch, aggregation.statements)

    @property
    def _key(self) -> tuple[str, ...]:
        return self.context.primary_key if self.sink.deduplicate else ()

    def _aggregation(self, columns: tuple[StagedColumn, ...], key: tuple[str, ...], op: str) -> Aggregation:
        """Both tables; read once per run."""
        landing = self._landing
        if landing is None:
            sources = tuple(group.source or name for name, group in self.sink.group_by.items())
            wanted = Wanted(self.sink.db_schema, self.sink.landing_table, key, self.sink.create, "add_columns", sources)
            with open_connection(self.sink.address()) as connection:
                landing = prepare_table(connection, wanted, columns, self.held)
                self._create(connection, landing)
            self._landing = landing
        groups = {name: group.source or name for name, group in self.sink.group_by.items()}
        return Aggregation(landing, columns, quote_name(self.sink.db_schema, self.sink.agg_table), groups, self._measures(landing), op)

    def _measures(self, landing: TableTarget) -> tuple[Measure, ...]:
        def kind(total: Total) -> str:
            plain = "bigint" if total.fn == "count" else "numeric" if total.fn in {"sum", "avg"} else landing.columns[total.source]
            return total.kind or plain

        return tuple(Measure(name, total.fn, total.source, kind(total)) for name, total in self.sink.aggregate.items())

    def _create(self, connection: psycopg.Connection[Any], landing: TableTarget) -> None:
        """Create the aggregate's table. Nulls are a normal group, where the server supports it (since version 15)."""
        columns = {name: group.kind or landing.columns[group.source or name] for name, group in self.sink.group_by.items()}
        columns |= {} if self.sink.group_by else {"key": "text DEFAULT 'all'"}
        columns |= {ROWS: "bigint NOT NULL", **{name: kind for measure in self._measures(landing) for name, kind in measure.stored.items()}}
        name = quote_name(self.sink.db_schema, self.sink.agg_table)
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
            return
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{quote_name(column)} {kind}' for column, kind in columns.items())})")
        key = join_names(tuple(self.sink.group_by) or ("key",))
        nulls = " NULLS NOT DISTINCT" if connection.info.server_version >= 150000 else ""
        connection.execute(f"CREATE UNIQUE INDEX ON {name} ({key}){nulls}")
