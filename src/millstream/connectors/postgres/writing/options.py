"""What a Postgres sink can be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import AfterValidator, Field

from millstream.clients.postgres import NAME_BYTES, Address, PostgresOptions
from millstream.connectors.postgres.writing.columns import TYPE, Arrays
from millstream.connectors.postgres.writing.merging import Conflict, Mode, Operator
from millstream.connectors.postgres.writing.target import Evolve
from millstream.errors import nearest
from millstream.plan.components import Problem, Sink
from millstream.plan.options import Columns


def _name(value: str) -> str:
    if len(value.encode()) > NAME_BYTES:
        raise ValueError(f"`{value}` is {len(value.encode())} bytes long, and Postgres takes {NAME_BYTES}")
    if "\0" in value or not value:
        raise ValueError("a name must not be empty, nor hold a zero byte")
    return value


def type_name(value: str) -> str:
    if not TYPE.fullmatch(value):
        raise ValueError(f"`{value}` is not a type's name")
    return value


Name = Annotated[str, AfterValidator(_name)]
"""A name in Postgres. It is quoted wherever it is used, so that it means itself, whatever it holds."""


class PostgresTarget(PostgresOptions, Sink):
    """What both sinks have in common: a database that holds the ledger and the staged rows."""

    extra: ClassVar[str] = "postgres"
    connects: ClassVar[bool] = True

    db_schema: Name = Field(default="public", alias="schema")
    """The schema that the tables are in; it is made when it is missing."""
    create: bool = True
    """Whether to make a table that is not there."""
    metadata_schema: Name = "millstream"
    """The schema for the ledger and for rows that are staged; made when it is missing. The ledger says which epoch the database holds."""
    connections: int = Field(8, ge=1, le=1000)
    """How many workers may write at the same time; each has a connection of its own."""
    commit_group: str = ""
    """Sinks of one group commit an epoch in one transaction: all their tables change at the same moment. They must use the same
    database and stand under the same root."""
    deduplicate: bool = True
    """Whether each epoch is collapsed to the last row of each key first. Say `false` when no key comes twice in an epoch, or for deltas."""

    @classmethod
    def default_connection(cls, options: Mapping[str, Any]) -> str:
        return "postgres"

    @property
    def group(self) -> str:
        return self.commit_group

    def address(self) -> Address:
        """A server that takes writes: of several hosts the primary, and never the one that was it before a failover."""
        return super().address().to(target_session_attrs="read-write")

    def missing(self) -> list[Problem]:
        """What nobody gave."""
        if self.database:
            return []
        help_ = "give it here, or for all nodes under `connections: {postgres: {database: …}}`"
        return [Problem("MS007", "a Postgres node needs `database`", help=help_)]


class PostgresSinkOptions(PostgresTarget):
    """Options of the sink `postgres`."""

    table: Name
    """The table."""
    mode: Mode | None = None
    """`append` adds rows, `upsert` replaces the row of the same key and applies deletes, `replace` puts the rows of each epoch that has any
    in the place of all others. Default: `upsert` when there is a primary key, else `append`."""
    on_conflict: Conflict = "update"
    """What `upsert` does with a key that the table has: `update` the row, or `nothing`."""
    update_where: dict[str, Operator] = Field(default={})
    """Column → operator: a stored row is updated only when the new value compares so with the stored one, as in `{updated_at: ">"}`. A
    stored null is always updated. Deletes do not ask."""
    soft_delete: Name | None = None
    """A column that marks deleted rows instead of removing them: the time of the epoch, or `true` where the column is a boolean."""
    evolve: Evolve = "fail"
    """What happens to columns that the table lacks: `add_columns` adds them, `ignore` leaves them out, `fail` stops."""
    types: dict[str, Annotated[str, AfterValidator(type_name)]] = Field(default={})
    """Column → type in Postgres, for a table or column that is made here: `{id: uuid, note: varchar(40)}`."""
    arrays: Arrays = "json"
    """How lists of plain values are stored: as `jsonb`, or as Postgres' own arrays (`native`)."""
    ordered_by: Columns = ()
    """Columns that a new table gets an index on."""

    def problems_of(self, schema: pa.Schema | None) -> list[Problem]:
        found = self.missing()
        if self.mode in {"append", "replace"}:
            given = {"on_conflict": self.on_conflict != "update", "update_where": self.update_where, "soft_delete": self.soft_delete}
            found += [Problem("MS006", f"`{name}` goes with `mode: upsert`", name) for name, value in given.items() if value]
        known: list[str] = schema.names if schema is not None else []
        named = {"update_where": tuple(self.update_where), "types": tuple(self.types), "ordered_by": self.ordered_by}
        for option, names in named.items() if known else ():
            unknown = [name for name in names if name not in known]
            found += [Problem("MS024", f"unknown column `{name}`", option, nearest(name, known)) for name in unknown]
        return found
