"""What is generated from the classes: reference pages (components, settings, error codes, Python), tables in other pages, and the stub of
the public names.

`python -m tools.docs --check` writes nothing and fails when a page is stale.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import millstream
from millstream.codes import CODES
from millstream.plan.settings import Settings
from millstream.registry import KINDS, Registry
from millstream.spec.component_page import component_page, nested_models, option_table, title_of
from millstream.sql.own_functions import GROUPS
from tools.dashboard import dashboard
from tools.reference import reference_pages
from tools.regions import region_pages

ROOT = Path(__file__).parent.parent / "docs"
STUB = "../src/millstream/__init__.pyi"
DASHBOARD = "../ops/grafana/millstream.json"

_FOLDERS = ("components", "reference")
"""Folders with nothing but written pages."""


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
