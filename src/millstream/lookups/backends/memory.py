"""A table in the memory of the process that runs the pipeline.

Workers are other processes: they reach it over a socket. So there is one copy, and every reader sees the last write. `sql` fills it, and it
ends with the run. The socket requires a secret made for the run; rows are sent as Arrow bytes, never as pickled objects.
"""

from __future__ import annotations

import json
import secrets
import threading
import weakref
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.lookups.table import TableSpec


class TableServer:
    """The tables of one run: name → key → row."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.secret = secrets.token_bytes(32)
        self._listener = Listener((host, 0), authkey=self.secret)
        self.place = f"{self._listener.address[0]}:{self._listener.address[1]}"
        tables: dict[str, dict[Any, tuple[Any, ...]]] = {}
        threading.Thread(target=_serve, args=(self._listener, tables, threading.Lock()), daemon=True).start()
        self._finalizer = weakref.finalize(self, self._listener.close)

    def close(self) -> None:
        self._finalizer()


class Table:
    """A table behind one socket."""

    def __init__(self, spec: TableSpec, schema: pa.Schema | None = None) -> None:
        self._spec = spec
        self._connection: Any = None
        self._schema = schema or pa.schema([pa.field(name, spec.types.get(name, pa.string())) for name in spec.names])

    def ensure(self) -> pa.Schema:
        if not self._spec.place:
            message = f"`{self._spec.name}` exists only in the memory of a run, and no run is active"
            raise RunError(Diagnostic("MS139", message, help="`backend: sqlite` keeps a table in a file"))
        return self._schema

    def get(self, keys: pa.Table) -> pa.Table:
        return _unpack(self._ask("get", keys))

    def put(self, rows: pa.Table) -> None:
        self._ask("put", rows.select(list(self._schema.names)))

    def delete(self, keys: pa.Table) -> int:
        return int(self._ask("delete", keys))

    def first(self, limit: int) -> pa.Table:
        return _unpack(self._ask("list", None, limit))

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        return self._schema.empty_table(), since

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _ask(self, verb: str, rows: pa.Table | None, limit: int = 0) -> bytes:
        self.ensure()
        host, _, port = self._spec.place.rpartition(":")
        try:
            if self._connection is None:
                self._connection = Client((host, int(port)), authkey=self._spec.secret)
            head = {"verb": verb, "table": self._spec.name, "limit": limit}
            self._connection.send_bytes(json.dumps(head).encode())
            self._connection.send_bytes(_pack(rows if rows is not None else self._schema.empty_table()))
            self._connection.send_bytes(_pack(self._schema.empty_table()))
            return bytes(self._connection.recv_bytes())
        except (OSError, EOFError) as error:
            self.close()
            raise TemporaryError(Diagnostic("MS139", f"the run that holds `{self._spec.name}` does not answer: {error}")) from error


def _serve(listener: Listener, tables: dict[str, dict[Any, tuple[Any, ...]]], lock: threading.Lock) -> None:
    while True:
        try:
            connection = listener.accept()
        except OSError:
            return  # the run has ended
        except Exception:  # noqa: BLE001 — a stranger without the secret
            continue
        threading.Thread(target=_answer, args=(connection, tables, lock), daemon=True).start()


def _answer(connection: Connection, tables: dict[str, dict[Any, tuple[Any, ...]]], lock: threading.Lock) -> None:
    with suppress(EOFError, OSError), connection:
        while True:
            head, rows, shape = json.loads(connection.recv_bytes()), _unpack(connection.recv_bytes()), _unpack(connection.recv_bytes())
            with lock:
                answer = _do(head, rows, shape.schema, tables.setdefault(head["table"], {}))
            connection.send_bytes(answer)


def _do(head: dict[str, Any], rows: pa.Table, schema: pa.Schema, table: dict[Any, tuple[Any, ...]]) -> bytes:
    keys = rows.column(0).to_pylist()
    if head["verb"] == "put":
        table.update(zip(keys, zip(*(column.to_pylist() for column in rows.columns), strict=True), strict=True))
        return b""
    if head["verb"] == "delete":
        return str(sum(table.pop(key, None) is not None for key in keys)).encode()
    wanted = sorted(table)[: head["limit"]] if head["verb"] == "list" else [key for key in keys if key in table]
    columns: Any = zip(*(table[key] for key in wanted), strict=True) if wanted else [[] for _ in schema]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return _pack(pa.table(arrays, schema=schema))


def _pack(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def _unpack(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
