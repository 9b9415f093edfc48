"""Names in Avro schemas: expanded when a schema is read, and defined at their first use when it is written.

In between every named type is represented by its full name, with its definition in a table. So a part of a schema can be written as a
complete schema, and schemas that refer to types of other subjects become one text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PLAIN = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = {"record", "error", "enum", "fixed"}


def expand_names(kind: Any, namespace: str, names: dict[str, dict[str, Any]]) -> Any:
    """The type with full names; its definitions are added to the table."""
    if isinstance(kind, list):
        return [expand_names(branch, namespace, names) for branch in kind]
    if isinstance(kind, str):
        return kind if kind in PLAIN else _full_name(kind, namespace, names)
    if not isinstance(kind, dict) or "type" not in kind:
        raise ValueError(f"`{json.dumps(kind)[:80]}` is not an Avro type")
    base = kind["type"]
    if base in _NAMED:
        return _definition(kind, namespace, names)
    inner = {"array": "items", "map": "values"}.get(base) if isinstance(base, str) else None
    if inner:
        return {**kind, inner: expand_names(kind[inner], namespace, names)}
    if base in PLAIN if isinstance(base, str) else False:
        return kind if kind.get("logicalType") else base
    return expand_names(base, namespace, names)


def _definition(kind: dict[str, Any], namespace: str, names: dict[str, dict[str, Any]]) -> str:
    given, own = str(kind["name"]), kind.get("namespace", namespace)
    full = given if "." in given or not own else f"{own}.{given}"
    inside = full.rpartition(".")[0]
    definition = names[full] = {name: value for name, value in kind.items() if name != "namespace"} | {"name": full}
    if "fields" in kind:
        definition["fields"] = [{**each, "type": expand_names(each["type"], inside, names)} for each in kind["fields"]]
    return full


def _full_name(name: str, namespace: str, names: Mapping[str, dict[str, Any]]) -> str:
    for full in ([] if "." in name or not namespace else [f"{namespace}.{name}"]) + [name]:
        if full in names:
            return full
    raise ValueError(f"the schema uses `{name}`, but does not define it")


def inline_names(kind: Any, names: Mapping[str, dict[str, Any]], said: set[str]) -> Any:
    if isinstance(kind, list):
        return [inline_names(branch, names, said) for branch in kind]
    if isinstance(kind, str):
        if kind in PLAIN or kind in said:
            return kind
        said.add(kind)
        definition = dict(names[kind]) if "." in kind else {**names[kind], "namespace": ""}
        if "fields" in definition:
            definition["fields"] = [{**each, "type": inline_names(each["type"], names, said)} for each in definition["fields"]]
        return definition
    for inner in ("items", "values"):
        if inner in kind:
            return {**kind, inner: inline_names(kind[inner], names, said)}
    return kind
