"""The JSON Schema of pipeline files: one `oneOf` per section, one member per component, limited to what editors support."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from millstream.plan.declarations import FunctionOptions
from millstream.plan.nodes import CommonOptions, WiredOptions
from millstream.plan.pipeline_tests import CaseOptions
from millstream.plan.settings import Settings
from millstream.registry import KINDS, Kind, PluginKind, Registry
from millstream.spec.docstrings import field_docs
from millstream.spec.includes import INCLUDE

_MODE: JsonSchemaMode = "validation"


class _Editors(GenerateJsonSchema):
    """Plain schemas also for values that only Python can pass: functions, Arrow batches."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 — pydantic reads it from instances

    def is_instance_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "object"}

    def callable_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "string"}


def pipeline_schema(registry: Registry | None = None) -> dict[str, Any]:
    """The schema of a whole file, with the components of a registry; those that are installed by default."""
    definitions: dict[str, Any] = {}
    registry = registry or Registry.installed()
    sections = {f"{kind}s": _section(registry, kind, definitions) for kind in KINDS}
    tests = {"type": "array", "items": model_schema(CaseOptions, definitions)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Millstream pipeline",
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {"^x-": {}},
        "anyOf": [{"required": ["sources", "sinks"]}, {"required": [INCLUDE]}],
        "properties": {
            "name": {
                "type": "string",
                "description": "The pipeline's identity in checkpoints and reports. Default: the file's stem.",
            },
            "description": {"type": "string", "description": "A sentence for readers."},
            INCLUDE: {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "Files in the same folder whose nodes, functions and connections belong to this pipeline.",
            },
            **sections,
            "functions": {
                "type": "object",
                "additionalProperties": {
                    "anyOf": [{"type": "string"}, model_schema(FunctionOptions, definitions), *_plugins(registry, "udf", definitions)]
                },
                "description": "Functions of yours that SQL can call, by name.",
            },
            "side_outputs": {
                "type": "object",
                "additionalProperties": {"type": "object", "required": ["type"], **_one_of(_plugins(registry, "side_output", definitions))},
                "description": "Plugins that see the rows of sources, by name.",
            },
            "settings": model_schema(Settings, definitions),
            "connections": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "Options of outside systems, by name.",
            },
            "tests": tests,
        },
        "$defs": definitions,
    }


def model_schema(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one model, with the texts of its fields; nested models go to `definitions`."""
    schema = model.model_json_schema(mode=_MODE, schema_generator=_Editors, ref_template="#/$defs/{model}")
    definitions |= schema.pop("$defs", {})
    docs = {(model.model_fields[name].alias or name): text for name, text in field_docs(model).items() if name in model.model_fields}
    for name, text in docs.items():
        if name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", text)
    return schema


def _section(registry: Registry, kind: Kind, definitions: dict[str, Any]) -> dict[str, Any]:
    members = [_component(kind, name, model, definitions) for name, model in registry.usable(kind)]
    known = {"type": "object", "required": ["type"], "oneOf": members}
    return {"type": ["object", "null"], "description": f"The {kind}s, by name.", "additionalProperties": known}


def _component(kind: Kind, name: str, model: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    own = model_schema(model, definitions)
    common = model_schema(CommonOptions if kind == "source" else WiredOptions, definitions)
    files = {option: {"type": "string", "description": text_file_doc(target)} for option, target in model.text_files.items()}
    either = {"allOf": [{"oneOf": [{"required": [target]}, {"required": [option]}]} for option, target in model.text_files.items()]}
    return {
        "title": f"{name} {kind}",
        "description": model.summary,
        "type": "object",
        "additionalProperties": False,
        "required": ["type", *(field for field in own.get("required", []) if field not in model.text_files.values())],
        "properties": {"type": {"const": name}, **own.get("properties", {}), **files, **common.get("properties", {})},
        **(either if files else {}),
    }


def _plugins(registry: Registry, kind: PluginKind, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Plugins that are no nodes."""
    return [_plugin(kind, name, model, definitions) for name, model in registry.usable(kind)]


def _plugin(kind: PluginKind, name: str, model: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    own = model_schema(model, definitions)
    sources = {"from": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}} if kind == "side_output" else {}
    return {
        "title": f"{name} {kind.replace('_', ' ')}",
        "description": model.summary,
        "type": "object",
        "additionalProperties": False,
        "required": ["type", *own.get("required", [])],
        "properties": {"type": {"const": name}, **sources, **own.get("properties", {})},
    }


def _one_of(members: list[dict[str, Any]]) -> dict[str, Any]:
    return {"oneOf": members} if members else {}


def text_file_doc(target: str) -> str:
    """The text of an option that names a file with another option's text."""
    return f"A file that holds `{target}`, instead of it. The path is relative to the pipeline's file, and must be in its folder."
