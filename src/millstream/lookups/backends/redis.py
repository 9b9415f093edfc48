"""A table in Redis or Valkey, in a form that can be edited with `redis-cli`.

A table without columns is one set: `SADD watched 42`. With columns every row is a hash: `HSET watched:42 tier gold`. A batch of keys is one
round trip: one `SMISMEMBER`, or one pipeline of `HMGET`. Redis stores text; values are converted to the declared types when they are read.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError
from millstream.lookups.table import TableSpec
from millstream.lookups.values import parse_values, plain, refuse_nul

if TYPE_CHECKING:
    import redis

_SECONDS = 10
_PAGE = 1000


class Table:
    """A table behind one client."""

    def __init__(self, spec: TableSpec, schema: pa.Schema | None = None) -> None:
        self._spec = spec
        self._client: redis.Redis | None = None
        kinds = [pa.field(name, spec.types.get(name, pa.string())) for name in spec.names]
        self._schema: pa.Schema = schema or pa.schema(kinds)
        self._fields = (*spec.columns, spec.time_column)

    def ensure(self) -> pa.Schema:
        """Creates nothing: a table begins with its first row."""
        with self._translate_errors() as client:
            client.ping()
            kind: Any = client.type(self._spec.table)
            if not self._spec.columns and kind not in {b"none", b"set"}:
                message = (
                    f"`{self._spec.name}`: the key `{self._spec.table}` of Redis is a {kind.decode()}, and a table without columns is a set"
                )
                raise RunError(Diagnostic("MS135", message, help="choose another `table`, or delete the key"))
        return self._schema

    def get(self, keys: pa.Table) -> pa.Table:
        names = [str(value) for value in plain(keys.column(0))]
        if not names:
            return self._schema.empty_table()
        with self._translate_errors() as client:
            if not self._spec.columns:
                held = client.smismember(self._spec.table, names)
                return self._table([name for name, here in zip(names, held, strict=True) if here], [])
            pipeline = client.pipeline(transaction=False)
            for name in names:
                pipeline.hmget(self._row(name), self._fields)
            found = pipeline.execute()
        rows = [(name, values) for name, values in zip(names, found, strict=True) if any(value is not None for value in values)]
        return self._table([name for name, _ in rows], [values for _, values in rows])

    def put(self, rows: pa.Table) -> None:
        refuse_nul(rows, self._spec.name)
        names = [str(value) for value in plain(rows[self._spec.keys[0]])]
        if not names:
            return
        with self._translate_errors() as client:
            if not self._spec.columns:
                client.sadd(self._spec.table, *names)
                return
            columns = [plain(rows[column]) for column in self._spec.columns]
            pipeline = client.pipeline(transaction=False)
            for name, *values in zip(names, *columns, strict=True):
                self._write(pipeline, name, values)
            pipeline.execute()

    def delete(self, keys: pa.Table) -> int:
        names = [str(value) for value in plain(keys.column(0))]
        if not names:
            return 0
        with self._translate_errors() as client:
            if not self._spec.columns:
                return int(client.srem(self._spec.table, *names))
            return int(client.delete(*map(self._row, names)))

    def first(self, limit: int) -> pa.Table:
        names: list[str] = []
        for name in self._names():
            if len(names) == limit:
                break
            names.append(name)
        return self.get(pa.table([parse_values(names, self._schema.field(0).type, self._spec.name, self._spec.keys[0])], names=["k"]))

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        message = f"`{self._spec.name}`: Redis cannot tell which rows have changed"
        raise RunError(Diagnostic("MS134", message, help="leave `cache.refresh` out, and set a shorter `cache.ttl`"))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _names(self) -> Iterator[str]:
        with self._translate_errors() as client:
            if not self._spec.columns:
                yield from (member.decode() for member in client.sscan_iter(self._spec.table, count=_PAGE))
                return
            pattern = "".join(f"\\{char}" if char in "*?[]\\" else char for char in f"{self._spec.table}:") + "*"
            start = len(f"{self._spec.table}:".encode())
            yield from (name[start:].decode() for name in client.scan_iter(pattern, count=_PAGE))

    def _write(self, pipeline: Any, name: str, values: list[Any]) -> None:
        row = self._row(name)
        given = {column: _word(value) for column, value in zip(self._spec.columns, values, strict=True) if value is not None}
        missing = [column for column in self._spec.columns if column not in given]
        pipeline.hset(row, mapping={**given, self._spec.time_column: f"{time.time():.3f}"})
        if missing:
            pipeline.hdel(row, *missing)

    def _row(self, name: str) -> str:
        return f"{self._spec.table}:{name}"

    def _table(self, names: list[str], values: list[Any]) -> pa.Table:
        columns: list[Any] = list(zip(*values, strict=True)) if values else [[] for _ in self._fields]
        fields = list(self._schema)
        arrays = [
            parse_values(column, field.type, self._spec.name, field.name) for column, field in zip([names, *columns], fields, strict=False)
        ]
        return pa.table(arrays, schema=self._schema)

    @contextmanager
    def _translate_errors(self) -> Iterator[redis.Redis]:
        import redis

        place = self._spec.place.rpartition("@")[2]
        try:
            yield self._connect()
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
            raise RunError(Diagnostic("MS138", f"Redis at `{place}` refuses the login: {error}", help="check user and password")) from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self.close()
            raise TemporaryError(Diagnostic("MS138", f"Redis at `{place}` cannot be reached: {error}", help="check `url`")) from error
        except redis.RedisError as error:
            raise RunError(Diagnostic("MS138", f"Redis at `{place}` refuses: {error}")) from error

    def _connect(self) -> redis.Redis:
        if self._client is None:
            import redis

            self._client = redis.Redis.from_url(self._spec.place, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
        return self._client


def require_client() -> None:
    if importlib.util.find_spec("redis") is None:
        raise SetupError(
            Diagnostic("MS045", "Redis needs the package `redis`", help="`pip install 'millstream[redis]'`, here and on the workers")
        )


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
