"""Keeps nulls in maps that rows are grouped by.

Spark 4.1 sorts the entries of a map before it groups by it, and the code that it generates for this turns a null among numbers, dates or
booleans into 0. Structs are not affected, so each value is put into a struct before the grouping, and taken out after it.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def wrapped(text: str, kind: DataType) -> str:
    """SQL for a value whose maps have structs as values."""
    return _changed(text, kind, 0, wrap=True)


def unwrapped(text: str, kind: DataType) -> str:
    """SQL for a value of this type, whose maps have structs as values, as it was."""
    return _changed(text, kind, 0, wrap=False)


def has_maps(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(has_maps(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and has_maps(kind.elementType))


def _changed(text: str, kind: DataType, depth: int, *, wrap: bool) -> str:
    if not has_maps(kind):
        return text
    key, value = f"k{depth}", f"v{depth}"
    if isinstance(kind, MapType):
        taken = value if wrap else f"{value}.v"
        inner = _changed(taken, kind.valueType, depth + 1, wrap=wrap)
        return f"transform_values({text}, ({key}, {value}) -> {f'struct({inner} AS v)' if wrap else inner})"
    if isinstance(kind, ArrayType):
        return f"transform({text}, {value} -> {_changed(value, kind.elementType, depth + 1, wrap=wrap)})"
    assert isinstance(kind, StructType)
    fields = [
        f"'{_escaped(field.name)}', {_changed(f'{text}.`{_quoted(field.name)}`', field.dataType, depth, wrap=wrap)}"
        for field in kind.fields
    ]
    return f"if({text} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def _quoted(name: str) -> str:
    return name.replace("`", "``")
