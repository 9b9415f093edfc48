"""The options of a Postgres source: the table, its rows and columns, and the mode."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.postgres import PostgresOptions
from millstream.plan.options import Columns, Duration, SchemaMap


class BoundedMode(BaseModel):
    """Read the rows that exist at the first start, then end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read what is there, then end."""


class IncrementalMode(BaseModel):
    """Poll for rows whose cursor has grown. Deletes are not seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["incremental"]
    """Read rows after the last one read."""
    cursor: str
    """The column that grows with every insert or update, such as `updated_at` or a serial number. Rows where it is null are not read
    until it has a value."""
    delay: Duration | None = None
    """For cursors that are times: skip rows until they are this old. A long transaction may commit rows with a time that has already
    been passed; choose more than your longest one."""


class CdcMode(BaseModel):
    """Every insert, update and delete, from Postgres' own log: rows have `_op` and `_seq`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["cdc"]
    """Follow the changes by logical replication."""
    slot: str = ""
    """The replication slot, which keeps the changes until they are committed here. Default: `millstream_<pipeline>_<source>`."""
    publication: str = ""
    """The publication, which defines the contents of the changes. Default: the slot's name."""
    create: bool = True
    """Whether to create slot and publication if they are missing. Otherwise an administrator creates them beforehand."""
    snapshot: Literal["initial", "never"] = "initial"
    """`initial`: first all rows of the table, as inserts, then its changes; no change is missed or comes twice. `never`: changes only,
    from the slot's position."""


class PostgresSourceOptions(PostgresOptions):
    """The options of a Postgres source."""

    relation: Annotated[str, Field(min_length=1, alias="table")]
    """The table, as `users` or `public.users`; names are case-sensitive. A name with a dot is written in double quotes: `public."a.b"`.
    Views and partitioned tables are tables too."""
    columns: Columns = ()
    """The columns to read. Default: all."""
    types: SchemaMap = Field(default={})
    """Column → Arrow type, for columns that should have another type than the one found, as `{price: "decimal(38,6)"}`."""
    where: str = ""
    """Keep the rows for which this is true: a condition in Postgres' SQL, evaluated there. Not with `cdc`: use a `filter` below."""
    mode: Annotated[BoundedMode | IncrementalMode | CdcMode, Field(discriminator="type")] = BoundedMode(type="bounded")
    """`{type: bounded}`, `{type: incremental, cursor: updated_at}` or `{type: cdc}`."""
    poll_interval: Duration = Duration("1s")
    """How often to poll for new rows."""
    partitions: int | None = Field(default=None, ge=1, le=1000)
    """How many ranges of keys are read in parallel. Default: the number of cores. A table without a key is read as a whole."""
    max_rows_per_epoch: int | None = Field(default=None, ge=1)
    """The approximate number of rows per epoch in a bounded read; a killed run continues after the last epoch. Default: all."""
    unchanged: Literal["fail", "null"] = "fail"
    """With `cdc`: how to handle a large value that an update did not change. Postgres omits it from the log unless the table has
    `REPLICA IDENTITY FULL`. The pipeline stops, or the value is null."""
    truncate: Literal["fail", "ignore"] = "fail"
    """With `cdc`: what happens when the table is truncated. The log does not contain the deleted rows, so the pipeline stops, or ignores
    it."""
    on_schema_change: Literal["fail", "ignore"] = "fail"
    """With `cdc`: what happens when a column is added, dropped or changes its type. The pipeline stops before the first such row and
    loses nothing, or continues with the known columns; a new one is ignored, a dropped one is null."""
