"""The rows of a script as types of TypeScript: what a function gets, and what it may return."""

from __future__ import annotations

import re

import pyarrow as pa

_NAME = re.compile(r"[A-Za-z_$][\w$]*")


def declare_rows(node: str, given: pa.Schema, result: pa.Schema) -> str:
    """A `row.d.ts` with the interfaces `Row` and `Result`."""
    row = _interface("Row", f"A row that the script of `{node}` gets.", given, returned=False)
    made = _interface("Result", "A row that it returns. A field that is left out is null.", result, returned=True)
    return f"{row}\n{made}"


def _interface(name: str, doc: str, schema: pa.Schema, *, returned: bool) -> str:
    mark = "?" if returned else ""
    fields = [f"  {_key(field.name)}{mark}: {_type(field.type, returned)} | null;" for field in schema]
    return "\n".join([f"/** {doc} */", f"interface {name} {{", *fields, "}", ""])


def _type(kind: pa.DataType, returned: bool) -> str:  # one line per type
    t = pa.types
    if t.is_boolean(kind):
        return "boolean"
    if t.is_int64(kind):
        return "bigint | number" if returned else "bigint"
    if t.is_integer(kind):
        return "number | bigint" if returned else "number"
    if t.is_floating(kind):
        return "number"
    if t.is_decimal(kind):
        return "string | number | bigint" if returned else "string"
    if t.is_date(kind) or t.is_timestamp(kind):
        return "string | Date" if returned else "string"
    if t.is_binary(kind) or t.is_large_binary(kind):
        return "Uint8Array"
    if t.is_list(kind) or t.is_large_list(kind):
        return f"Array<{_type(kind.value_type, returned)} | null>"
    if t.is_map(kind):
        key, item = _type(kind.key_type, returned), f"{_type(kind.item_type, returned)} | null"
        return f"Map<{key}, {item}>" + (f" | Record<string, {item}>" if returned and key == "string" else "")
    if t.is_struct(kind):
        mark = "?" if returned else ""
        return "{ " + "; ".join(f"{_key(field.name)}{mark}: {_type(field.type, returned)} | null" for field in kind) + " }"
    return "null" if t.is_null(kind) else "string"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
