"""What is generated from the classes: reference pages (components, settings, error codes, Python), tables in other pages, and the stub of
the public names.

`python -m tools.docs --check` writes nothing and fails when a page is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import millstream
from millstream.codes import CODES
from millstream.plan.nodes import CommonOptions, WiredOptions
from millstream.plan.settings import Settings
from millstream.registry import KINDS, Kind, Registry
from millstream.spec.docstrings import field_docs
from millstream.spec.json_schema import model_schema, text_file_doc
from millstream.sql.own_functions import GROUPS
from tools.dashboard import dashboard
from tools.reference import reference_pages
from tools.regions import region_pages

ROOT = Path(__file__).parent.parent / "docs"
STUB = "../src/millstream/__init__.pyi"
DASHBOARD = "../ops/grafana/millstream.json"

_FOLDERS = ("components", "reference")
"""Folders with nothing but written pages."""
_MAPS = ("event_time", "telemetry")


def pages() -> dict[str, str]:
    """Path under docs/ → text"""
    found: dict[str, str] = {}
    registry = Registry.installed()
    for kind in KINDS:
        for name in registry.types(kind):
            found[f"components/{kind}s/{name}.md"] = component_page(kind, name, registry.find(kind, name))
    found["components/README.md"] = component_index(registry)
    found["settings.md"] = settings_page()
    found["errors.md"] = errors_page()
    found["reference/functions.md"] = functions_page()
    found[STUB] = public_names()
    found[DASHBOARD] = dashboard()
    return found | reference_pages() | region_pages()


def component_page(kind: Kind, name: str, model: Any) -> str:
    own, common = option_table(model, model.text_files), option_table(CommonOptions if kind == "source" else WiredOptions)
    lines = [f"# {name} ({kind})", "", model.summary, "", inspect.cleandoc(model.__doc__ or ""), ""]
    if kind == "sink":
        lines += [f"Guarantee: **{model.best.replace('_', ' ')}**.", ""]
    if model.example:
        lines += ["```yaml", inspect.cleandoc(model.example), "```", ""]
    lines += ["## Options", "", *(own or ["None of its own."]), ""]
    nested = [part for field in model.model_fields.values() for part in nested_models(field)]
    for part in dict.fromkeys(nested):
        lines += [f"### {title_of(part)}", "", inspect.cleandoc(part.__doc__ or ""), "", *option_table(part), ""]
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


def component_index(registry: Registry) -> str:
    lines = ["# Components", ""]
    for kind in KINDS:
        lines += [f"## {kind.capitalize()}s", ""]
        lines += [f"- [{name}]({kind}s/{name}.md): {registry.find(kind, name).summary}" for name in registry.types(kind)]  # type: ignore[union-attr]  # listed types exist
        lines.append("")
    return "\n".join(lines)


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Under `settings:` in a pipeline or in `millstream.yaml`; as `MILLSTREAM__SETTINGS__<NAME>` in the environment;",
    ]
    lines += [
        "as `--set NAME=VALUE` on the command line. The order, strongest first: flag, environment, `millstream.yaml`, pipeline, default.",
        "",
    ]
    lines += option_table(Settings)
    nested = dict.fromkeys(part for field in Settings.model_fields.values() for part in nested_models(field))
    for part in nested:
        lines += ["", f"## {title_of(part)}", "", inspect.cleandoc(part.__doc__ or ""), "", *option_table(part)]
    return "\n".join([*lines, ""])


def errors_page() -> str:
    lines = ["# Errors", "", "Every message carries a code that keeps its meaning. `millstream explain CODE` prints the same text.", ""]
    for code, text in CODES.items():
        lines += [f"## {code}", "", f"**{text.title}.** {text.why}", "", f"What to do: {text.fix}", ""]
    return "\n".join(lines)


def functions_page() -> str:
    lines = ["# Functions of SQL", "", "What Millstream adds to [Spark's functions](https://spark.apache.org/docs/latest/api/sql/)."]
    lines += ["They can be called in every query, condition and computed column. `millstream functions NAME` prints the same. Arguments of"]
    lines += ["other types are converted as in Spark's own functions; a text becomes its bytes in UTF-8.", ""]
    for group, members in GROUPS.items():
        lines += [f"## {group}", ""]
        for each in members:
            also = f" Also called {', '.join(f'`{name}`' for name in each.aliases)}." if each.aliases else ""
            lines += [
                f"### `{each.call}` → `{each.returns}`",
                "",
                f"{each.summary} Nulls: {each.nulls}.{also}",
                "",
                "| call | value |",
                "|---|---|",
            ]
            lines += [f"| `{call.replace('|', chr(92) + '|')}` | `{value}` |" for call, value in each.examples]
            lines += [""]
    return "\n".join(lines)


def public_names() -> str:
    """The stub that type checkers read instead of `millstream/__init__.py`, whose names load on first use."""
    homes = millstream._modules()
    lines = ['"""The public names. Written by `make docs`."""', ""]
    lines += [f"from {module} import {name} as {name}" for name, module in sorted(homes.items(), key=lambda pair: (pair[1], pair[0]))]
    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", "_NAMES: dict[str, tuple[str, ...]]", ""]) + (
        "\ndef _modules() -> dict[str, str]: ...\n"
    )


def stale() -> list[str]:
    """Files that differ from what the classes say, and pages of components that are gone."""
    wanted = pages()
    there = {path.relative_to(ROOT).as_posix() for folder in _FOLDERS for path in (ROOT / folder).rglob("*.md")}
    different = [path for path, text in wanted.items() if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text]
    return sorted({*different, *(there - set(wanted))})


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        print("\n".join(f"stale: docs/{path}" for path in stale()) or "the pages are up to date")
        return 1 if stale() else 0
    written = pages()
    for folder in _FOLDERS:
        for page in (ROOT / folder).rglob("*.md"):
            page.unlink()
    for path, text in written.items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"{len(written)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
