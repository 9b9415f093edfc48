"""The options of the Postgres sinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import AfterValidator, Field

from millstream.clients.postgres import NAME_BYTES, Address, PostgresOptions
from millstream.connectors.postgres.write.columns import TYPE, Arrays
from millstream.connectors.postgres.write.merge import Conflict, Mode, Operator
from millstream.connectors.postgres.write.target import Evolve
from millstream.errors import nearest
from millstream.plan.components import Problem, Sink
from millstream.plan.options import Columns


def _name(value: str) -> str:
    if len(value.encode()) > NAME_BYTES:
        raise ValueError(f"`{value}` is {len(value.encode())} bytes long, and Postgres allows {NAME_BYTES}")
    if "\0" in value or not value:
        raise ValueError("a name must not be empty or contain a zero byte")
    return value


def type_name(value: str) -> str:
    if not TYPE.fullmatch(value):
        raise ValueError(f"`{value}` is not a type name")
    return value


Name = Annotated[str, AfterValidator(_name)]
"""A name in Postgres. It is always quoted, so that it is never interpreted."""


class PostgresTarget(PostgresOptions, Sink):
    """The common options of both sinks: a database that holds the ledger and the staged rows."""

    extra: ClassVar[str] = "postgres"
    connects: ClassVar[bool] = True

    db_schema: Name = Field(default="public", alias="schema")
    """The schema of the tables; it is created if missing."""
    create: bool = True
    """Whether to create a missing table."""
    metadata_schema: Name = "millstream"
    """The schema for the ledger and for staged rows; created if missing. The ledger stores the epoch that the database holds."""
    connections: int = Field(8, ge=1, le=1000)
    """How many workers may write at the same time; each has its own connection."""
    commit_group: str = ""
    """Sinks of one group commit an epoch in one transaction: all their tables change at the same time. They must use the same database
    and have the same root."""
    deduplicate: bool = True
    """Whether each epoch is first reduced to the last row of each key. Set `false` when no key occurs twice in an epoch, or for deltas."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        return "postgres"

    @property
    def group(self) -> str:
        return self.commit_group

    def address(self) -> Address:
        """A server that accepts writes: of several hosts the primary, and never a former primary after a failover."""
        return super().address().to(target_session_attrs="read-write")

    def missing(self) -> list[Problem]:
        """Required options that are missing."""
        if self.database:
            return []
        help_ = "give it here, or for all nodes under `connections: {postgres: {database: …}}`"
        return [Problem("MS007", "a Postgres node needs `database`", help=help_)]


class PostgresSinkOptions(PostgresTarget):
    """Options of the sink `postgres`."""

    table: Name
    """The table."""
    mode: Mode | None = None
    """`append` adds rows, `upsert` replaces the row of the same key and applies deletes, `replace` replaces all rows by those of each
    epoch that has any. Default: `upsert` when there is a primary key, else `append`."""
    on_conflict: Conflict = "update"
    """What `upsert` does with an existing key: `update` the row, or `nothing`."""
    update_where: dict[str, Operator] = Field(default={})
    """Column → operator: a stored row is updated only when this comparison of the new value with the stored one is true, as in
    `{updated_at: ">"}`. A stored null is always updated. Deletes are not compared."""
    soft_delete: Name | None = None
    """A column that marks deleted rows instead of removing them: the time of the epoch, or `true` where the column is a boolean."""
    evolve: Evolve = "fail"
    """What happens to columns that the table lacks: `add_columns` adds them, `ignore` skips them, `fail` stops."""
    types: dict[str, Annotated[str, AfterValidator(type_name)]] = Field(default={})
    """Column → Postgres type, for a new table or column: `{id: uuid, note: varchar(40)}`."""
    arrays: Arrays = "json"
    """How lists of plain values are stored: as `jsonb`, or as Postgres arrays (`native`)."""
    ordered_by: Columns = ()
    """Columns with an index in a new table."""

    def problems_of(self, schema: pa.Schema | None) -> list[Problem]:
        found = self.missing()
        if self.mode in {"append", "replace"}:
            given = {"on_conflict": self.on_conflict != "update", "update_where": self.update_where, "soft_delete": self.soft_delete}
            found += [Problem("MS006", f"`{name}` needs `mode: upsert`", name) for name, value in given.items() if value]
        known: list[str] = schema.names if schema is not None else []
        named = {"update_where": tuple(self.update_where), "types": tuple(self.types), "ordered_by": self.ordered_by}
        for option, names in named.items() if known else ():
            unknown = [name for name in names if name not in known]
            found += [Problem("MS024", f"unknown column `{name}`", option, nearest(name, known)) for name in unknown]
        return found
