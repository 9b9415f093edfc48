"""What surrounds a plugin in the checks: a context, a store, the way to a worker, and rows of every type under names of any alphabet."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.clients.storage import open_storage
from millstream.jvm.pickling import by_value
from millstream.plan.components.context import NodeContext
from millstream.plan.components.shipping import for_workers
from millstream.registry.loading import own_modules
from millstream.store.protocol import Entry, Namespace

NODE = "größe_数据"
"""A name of a node, as users may choose it."""

_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, None, False]),
    "int8": (pa.int8(), [1, None, -128]),
    "int16": (pa.int16(), [1, None, -32768]),
    "int32": (pa.int32(), [1, None, -(2**31)]),
    "int64": (pa.int64(), [1, None, 2**63 - 1]),
    "float32": (pa.float32(), [0.5, None, -1.5]),
    "float64": (pa.float64(), [0.5, None, 1e300]),
    "decimal": (pa.decimal128(38, 10), [Decimal("1.5000000000"), None, Decimal("-7.0000000001")]),
    "string": (pa.string(), ["naïve 文字 🙂", None, ""]),
    "binary": (pa.binary(), [b"\x00\xff", None, b""]),
    "date": (pa.date32(), [date(2024, 2, 29), None, date(1969, 12, 31)]),
    "timestamp": (pa.timestamp("us"), [datetime(2024, 2, 29, 12), None, datetime(1969, 12, 31)]),
    "timestamp_utc": (pa.timestamp("us", tz="UTC"), [datetime(2024, 2, 29, 12, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC)]),
    "list": (pa.list_(pa.int64()), [[1, None], None, []]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], None, []]),
    "größe 数据": (pa.string(), ["a", None, "b"]),
}
"""Column → type and values: every type that Spark hands to a worker."""


def every_type() -> pa.Schema:
    return pa.schema([(name, kind) for name, (kind, _) in _VALUES.items()])


def batch_of(schema: pa.Schema, first: int = 0) -> pa.RecordBatch:
    """Three rows for a schema. `first` makes them differ from others where a number or text can."""
    return pa.RecordBatch.from_arrays([_array(field, first) for field in schema], schema=schema)


def _array(field: pa.Field, first: int) -> pa.Array:
    if pa.types.is_int64(field.type) and field.name not in _VALUES:
        return pa.array([first, first + 1, first + 2], field.type)
    if pa.types.is_string(field.type) and field.name not in _VALUES:
        return pa.array([f"row {first}", f"行 {first + 1}", f"row {first + 2}"], field.type)
    known = next((values for kind, values in _VALUES.values() if kind == field.type), None)
    return pa.array(known, field.type) if known is not None else pa.array([0, 1, None], pa.int64()).cast(field.type)


@dataclass
class Values:
    """A store in memory."""

    values: dict[tuple[str, str], Any] = field(default_factory=dict)

    def get(self, namespace: str, key: str) -> Any | None:
        return self.values.get((namespace, key))

    def put_many(self, namespace: str, values: Mapping[str, Any]) -> None:
        self.values |= {(namespace, key): value for key, value in values.items()}

    def list(self, namespace: str | None = None, prefix: str = "") -> list[Entry]:
        found = [(where, key) for where, key in self.values if namespace in (None, where) and key.startswith(prefix)]
        return [Entry(where, key, self.values[where, key], "") for where, key in sorted(found)]

    def delete(self, namespace: str, key: str | None = None) -> int:
        gone = [each for each in self.values if each[0] == namespace and key in (None, each[1])]
        for each in gone:
            del self.values[each]
        return len(gone)

    def close(self) -> None:
        return None


def make_context(folder: Path) -> NodeContext:
    """A context whose storage is in the folder."""
    return NodeContext(
        NODE, Path.cwd(), open_storage(tempfile.mkdtemp(dir=folder)), pipeline="conformance", store=Namespace(Values(), NODE)
    )


def sent(value: Any, plugin: type) -> Any:
    """A value as a worker receives it."""
    from pyspark import cloudpickle

    pickling: Any = cloudpickle  # it has no types
    with by_value(*own_modules(plugin), function=plugin, directory=Path.cwd()):
        return pickling.loads(pickling.dumps(value))


def on_worker(plugin: Any, method: str) -> Any:
    """The plugin as workers have it."""
    return sent(for_workers(plugin, method), type(plugin))
