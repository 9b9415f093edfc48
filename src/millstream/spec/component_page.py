"""The page of a component or plugin, made from its class: what it is, an example, and a table of its options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from millstream.plan.nodes import CommonOptions, WiredOptions
from millstream.registry import KINDS, PluginKind
from millstream.spec.docstrings import field_docs
from millstream.spec.json_schema import model_schema, text_file_doc

_MAPS = ("event_time", "telemetry")


def component_page(kind: PluginKind, name: str, model: Any) -> str:
    own, common = option_table(model, model.text_files), option_table(CommonOptions if kind == "source" else WiredOptions)
    lines = [
        f"# {name} ({kind.replace('_', ' ')})",
        "",
        *([model.summary, ""] if model.summary else []),
        inspect.cleandoc(model.__doc__ or ""),
        "",
    ]
    if kind == "sink":
        lines += [f"Guarantee: **{model.best.replace('_', ' ')}**.", ""]
    if model.example:
        lines += ["```yaml", inspect.cleandoc(model.example), "```", ""]
    lines += ["## Options", "", *(own or ["None of its own."]), ""]
    nested = [part for field in model.model_fields.values() for part in nested_models(field)]
    for part in dict.fromkeys(nested):
        lines += [f"### {title_of(part)}", "", inspect.cleandoc(part.__doc__ or ""), "", *option_table(part), ""]
    if kind not in KINDS:
        return "\n".join(lines)
    return "\n".join([*lines, "## Options of every node", "", *common, "", *common_parts()])


def common_parts() -> list[str]:
    """The maps among the options of every node."""
    parts = {name: part for name, field in CommonOptions.model_fields.items() for part in nested_models(field) if name in _MAPS}
    lines: list[str] = []
    for name, part in parts.items():
        lines += [f"### {name}", "", inspect.cleandoc(part.__doc__ or ""), "", *option_table(part), ""]
    return lines


def option_table(model: type[BaseModel], files: Mapping[str, str] | None = None) -> list[str]:
    """One row per option. `files` are options that name a file → the options that the file's text replaces: exactly one of the two."""
    docs, schema = field_docs(model), model_schema(model, {})
    instead = {target: option for option, target in (files or {}).items()}
    rows = []
    for name, field in model.model_fields.items():
        label = field.alias or name
        default = default_text(field) + (f", or `{instead[label]}`" if label in instead else "")
        rows.append(f"| `{label}` | {type_text(schema['properties'].get(label, {}))} | {default} | {docs.get(name, '')} |")
    rows += [f"| `{option}` | text | **required**, or `{target}` | {text_file_doc(target)} |" for option, target in (files or {}).items()]
    return ["| option | type | default | |", "|---|---|---|---|", *rows] if rows else []


def type_text(schema: dict[str, Any]) -> str:
    """A JSON Schema type in a few words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(text for part in schema[key] if (text := type_text(part)) != "null"))
    if "$ref" in schema:
        return "map"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "map", "array": "list"}
    kind = schema.get("type", "any")
    return words.get(kind, kind) if isinstance(kind, str) else "any"


def default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return "see below" if value.model_dump(exclude_defaults=True) == {} else f"`{value.model_dump(mode='json')}`"
    return "" if value in (None, (), {}, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def nested_models(field: FieldInfo) -> list[type[BaseModel]]:
    """Models that a field is made of, and theirs."""
    found: list[type[BaseModel]] = []

    def visit(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found.append(annotation)
            found.extend(part for inner in annotation.model_fields.values() for part in nested_models(inner))
        for argument in get_args(annotation):
            visit(argument)

    visit(field.annotation)
    return found


def title_of(model: type[BaseModel]) -> str:
    kind = model.model_fields.get("type")
    tags = get_args(kind.annotation) if kind else ()
    return f"type: {tags[0]}" if tags else model.__name__
