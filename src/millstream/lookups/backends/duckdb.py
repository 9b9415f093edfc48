"""A table in a DuckDB file, read only: DuckDB joins a batch of keys directly from Arrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, SetupError, TemporaryError, nearest
from millstream.lookups.table import TableSpec, missing_column, missing_table

if TYPE_CHECKING:
    import duckdb


class Table:
    """A table behind one connection."""

    def __init__(self, spec: TableSpec, schema: pa.Schema | None = None) -> None:
        self._spec, self._schema, self._name = spec, schema, _quote(spec.namespace, spec.table)
        self._connection: duckdb.DuckDBPyConnection | None = None

    def ensure(self) -> pa.Schema:
        spec = self._spec
        with self._translate_errors() as connection:
            text = """SELECT column_name FROM information_schema.columns
                      WHERE lower(table_name) = lower(?) AND (? = '' OR lower(table_schema) = lower(?))"""
            found = [name for (name,) in connection.execute(text, [spec.table, spec.namespace, spec.namespace]).fetchall()]
            if not found:
                raise missing_table(spec)
            for name in spec.names:
                if name.lower() not in map(str.lower, found):
                    raise missing_column(spec, name, nearest(name, found))
            natural = self._arrow(connection, f"SELECT {self._select_list()} FROM {self._name} t LIMIT 0").schema
        self._schema = pa.schema([pa.field(name, _spark_type(natural.field(index).type)) for index, name in enumerate(spec.names)])
        return self._schema

    def get(self, keys: pa.Table) -> pa.Table:
        schema = self._schema or self.ensure()
        match = " AND ".join(f"t.{_quote(name)} = k.k{index}" for index, name in enumerate(self._spec.keys))
        named = keys.rename_columns([f"k{index}" for index in range(keys.num_columns)])
        with self._translate_errors() as connection:
            connection.register("_millstream_keys", named)
            text = f"SELECT {self._select_list()} FROM {self._name} t JOIN _millstream_keys k ON {match}"
            found = self._arrow(connection, text)
            connection.unregister("_millstream_keys")
        return found.rename_columns(schema.names).cast(schema)

    def put(self, rows: pa.Table) -> None:
        raise NotImplementedError

    def delete(self, keys: pa.Table) -> int:
        raise NotImplementedError

    def first(self, limit: int) -> pa.Table:
        raise NotImplementedError

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        raise NotImplementedError

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _select_list(self) -> str:
        return ", ".join(f"t.{_quote(name)}" for name in self._spec.names)

    def _arrow(self, connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
        return connection.sql(text).to_arrow_table()

    @contextmanager
    def _translate_errors(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        try:
            if self._connection is None:
                if not Path(self._spec.place).is_file():
                    raise RunError(
                        Diagnostic("MS137", f"`{self._spec.name}`: there is no file `{self._spec.place}`", help="correct `path`")
                    )
                self._connection = duckdb.connect(self._spec.place, read_only=True)
            yield self._connection
        except duckdb.Error as error:
            self.close()
            kind = TemporaryError if "lock" in str(error) else RunError
            reason = str(error).partition("\n")[0]
            raise kind(Diagnostic("MS137", f"DuckDB refuses `{self._spec.place}`: {reason}")) from error


def require_client() -> None:
    if importlib.util.find_spec("duckdb") is None:
        raise SetupError(
            Diagnostic("MS045", "DuckDB needs the package `duckdb`", help="`pip install 'millstream[duckdb]'`, here and on the workers")
        )


def _quote(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Types that Spark has: microseconds, and signed integers."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width < 64 else pa.decimal128(20, 0)
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind) else kind
