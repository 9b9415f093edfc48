"""The options of a Postgres source: which table, which of its rows and columns, and how it is followed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.postgres import PostgresOptions
from millstream.plan.options import Columns, Duration, SchemaMap


class BoundedMode(BaseModel):
    """Read the rows that are there at the first start, then end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read what is there, then end."""


class IncrementalMode(BaseModel):
    """Look again and again for rows whose cursor has grown. Deletes are not seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["incremental"]
    """Ask for rows beyond the last one read."""
    cursor: str
    """The column that grows with every insert or update, such as `updated_at` or a running number. Rows where it is null are not read
    until it has a value."""
    delay: Duration | None = None
    """For cursors that are times: leave rows alone until they are this old. A transaction that takes long may commit rows with a time
    that has been passed already; choose more than your longest one."""


class CdcMode(BaseModel):
    """Every insert, update and delete, out of Postgres' own log: rows have `_op` and `_seq`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["cdc"]
    """Follow the changes by logical replication."""
    slot: str = ""
    """The replication slot, which keeps the changes until they are committed here. Default: `millstream_<pipeline>_<source>`."""
    publication: str = ""
    """The publication, which says what is in the changes. Default: the slot's name."""
    create: bool = True
    """Whether slot and publication are made when they are missing. Else whoever may do so makes them beforehand."""
    snapshot: Literal["initial", "never"] = "initial"
    """`initial`: first all rows that the table has, as inserts, then its changes; no change is missed or comes twice in between.
    `never`: changes only, from where the slot is."""


class PostgresSourceOptions(PostgresOptions):
    """What a source can be told."""

    relation: Annotated[str, Field(min_length=1, alias="table")]
    """The table, as `users` or `public.users`; names are taken as they stand, case and all. One that holds a dot is put in double quotes:
    `public."a.b"`. Views and partitioned tables are tables too."""
    columns: Columns = ()
    """The columns to read. Default: all."""
    types: SchemaMap = Field(default={})
    """Column → Arrow type, for columns that should have another type than the one found, as `{price: "decimal(38,6)"}`."""
    where: str = ""
    """Keep the rows for which this is true: a condition in Postgres' own SQL, tried there. Not with `cdc`: use a `filter` below."""
    mode: Annotated[BoundedMode | IncrementalMode | CdcMode, Field(discriminator="type")] = BoundedMode(type="bounded")
    """`{type: bounded}`, `{type: incremental, cursor: updated_at}` or `{type: cdc}`."""
    poll_interval: Duration = Duration("1s")
    """How often to look for new rows."""
    partitions: int | None = Field(default=None, ge=1, le=1000)
    """How many ranges of keys are read side by side. Default: as many as there are cores. A table without a key is read in one go."""
    max_rows_per_epoch: int | None = Field(default=None, ge=1)
    """About how many rows an epoch of a bounded read takes; a run that is killed goes on after the last one. Default: all."""
    unchanged: Literal["fail", "null"] = "fail"
    """With `cdc`: what a large value is that an update did not touch. Postgres leaves it out of the log unless the table has `REPLICA
    IDENTITY FULL`. The pipeline stops, or the value is null."""
    truncate: Literal["fail", "ignore"] = "fail"
    """With `cdc`: what happens when the table is truncated. No row tells which ones are gone, so the pipeline stops, or goes on as if
    nothing was."""
    on_schema_change: Literal["fail", "ignore"] = "fail"
    """With `cdc`: what happens when a column is added, dropped or changes its type. The pipeline stops before the first such row and loses
    nothing, or goes on with the columns that it knows; a new one is left out, a dropped one is null."""
