"""Opens a pipeline's store: a SQLite file in its checkpoint, or a table in Postgres."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from millstream.clients.postgres import PostgresOptions
from millstream.clients.storage import is_local
from millstream.errors import Diagnostic, SpecError, nearest
from millstream.plan.run_options import checkpoint_of
from millstream.plan.topology import Topology
from millstream.store.protocol import Store

FILE = "_millstream/store.db"


def open_store(topology: Topology) -> Store | None:
    """The pipeline's store; None when its checkpoint is not on this machine and no other place is set."""
    if topology.settings.store.backend == "postgres":
        from millstream.store.postgres import PostgresStore

        return PostgresStore(_options(topology).address(), topology.settings.store.db_schema, topology.name)
    url = checkpoint_of(topology)
    if not is_local(url):
        return None
    from millstream.store.sqlite import SqliteStore

    return SqliteStore(Path(url.removeprefix("file://")) / FILE, topology.settings.durable)


def _options(topology: Topology) -> PostgresOptions:
    name, known = topology.settings.store.connection, {connection.name: connection for connection in topology.connections}
    if name not in known:
        message = f"the store needs the connection `{name}`, which does not exist"
        raise SpecError(Diagnostic("MS014", message, help=nearest(name, known) or f"add `connections: {{{name}: {{host: …}}}}`"))
    try:
        return PostgresOptions.model_validate(known[name].options)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"connection `{name}` does not fit the store: {first['msg']}"
        raise SpecError(Diagnostic("MS008", message, detail=".".join(map(str, first["loc"])))) from None
