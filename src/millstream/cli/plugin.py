"""`millstream plugin`: begin a plugin, and show which are installed."""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.output import Format, narrate
from millstream.errors import Diagnostic, MillstreamError, UsageError, nearest
from millstream.registry import INTERFACE, PLUGIN_KINDS, Registry, origin_of
from millstream.registry.mark import NAME

plugin = typer.Typer(help="Begin a plugin, and show which are installed.", no_args_is_help=True)

_SUMMARIES = {
    "source": "The first numbers.",
    "transform": "Add the length of a text.",
    "sink": "Write rows into SQLite, exactly once.",
    "udf": "Multiply a number.",
    "preprocessor": "Replace `<<name>>` in pipelines.",
    "side_output": "Count large batches.",
}


def _kinds() -> list[str]:
    return list(PLUGIN_KINDS)


@plugin.callback()
def _group() -> None:
    """Group the commands for plugins."""


@plugin.command()
def new(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(PLUGIN_KINDS)}.", show_default=False, autocompletion=_kinds)],
    name: Annotated[str, typer.Argument(help="What pipelines give as `type`: my_sink, or acme.my_sink.", show_default=False)],
    folder: Annotated[Path | None, typer.Option(help="Where the project is written. Default: a folder of its name.")] = None,
) -> None:
    """Write a project with a plugin that works, a test that passes, and a README."""
    kind = kind.replace("-", "_")
    if kind not in PLUGIN_KINDS:
        raise UsageError(Diagnostic("MS008", f"there is no kind of plugin `{kind}`", help=nearest(kind, PLUGIN_KINDS)))
    if not NAME.fullmatch(name):
        raise UsageError(
            Diagnostic("MS017", f"`{name}` cannot be the name of a plugin", help="`name` or `namespace.name`, of a-z, 0-9 and _")
        )
    package = name.replace(".", "_")
    target = folder or Path(package)
    if target.exists():
        raise UsageError(Diagnostic("MS001", f"`{target}` exists already", help="choose another name, or another `--folder`"))
    for path, text in _project(kind, name, package).items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    print(target)
    narrate(f"next:  cd {target} && pip install -e . && pytest")


@plugin.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="Only plugins of this kind.", autocompletion=_kinds)] = "",
    all_: Annotated[bool, typer.Option("--all", help="Show the built-in components too.")] = False,
    format: Annotated[Format | None, typer.Option(help="`json` is the default in a pipe.", show_default=False)] = None,
) -> None:
    """List the plugins that are installed, where each comes from, and whether it can be used."""
    as_json = (format or (Format.text if sys.stdout.isatty() else Format.json)) is Format.json
    rows = [row for row in _installed() if (all_ or row["from"].partition(" ")[0] != "millstream") and kind in ("", row["kind"])]
    if as_json:
        print("\n".join(map(json.dumps, rows)), end="\n" if rows else "")
    elif rows:
        from millstream.cli.rows import as_lines

        print(as_lines(rows))
    narrate(
        f"{len(rows)} {'plugin' if len(rows) == 1 else 'plugins'}" + ("" if rows or all_ else "; `--all` shows the built-in components")
    )


def _installed() -> list[dict[str, str]]:
    registry, rows = Registry.installed(), []
    for name, entries in sorted(registry.entries.items()):
        kind, _, type_name = name.partition(".")
        for entry in entries:
            package = getattr(entry, "dist", None)
            origin = f"{origin_of(entry)} {package.version}" if package is not None else origin_of(entry)
            rows.append({"kind": kind, "type": type_name, "from": origin, "class": entry.value, "state": _state(registry, kind, type_name)})
    return rows


def _state(registry: Registry, kind: str, name: str) -> str:
    """`ok`, or what a pipeline would be told."""
    if any(entry.value.startswith("millstream.") for entry in registry.entries[f"{kind}.{name}"]):
        return "ok"
    try:
        registry.find(kind, name)  # type: ignore[arg-type]  # a name without a known kind is found nowhere
    except MillstreamError as error:
        return f"{error.diagnostics[0].code}: {error.diagnostics[0].message}"
    return "ok"


def _project(kind: str, name: str, package: str) -> dict[str, str]:
    """Path in the project → text."""
    from importlib.metadata import version

    words = {
        "USE": _template(f"{kind}.use").rstrip(),
        "SUMMARY": _SUMMARIES[kind],
        "PACKAGE": package,
        "CLASS": "".join(word.capitalize() for word in name.rpartition(".")[2].split("_")),
        "TYPE": name,
        "KIND": kind,
        "INTERFACE": str(INTERFACE),
        "VERSION": version("millstream"),
    }

    def filled(text: str) -> str:
        for word, value in words.items():
            text = re.sub(rf"\b{word}\b", lambda _, value=value: value, text)  # type: ignore[misc]  # the value is bound here
        return text

    return {
        "pyproject.toml": filled(_template("pyproject.toml")),
        "README.md": filled(_template("README.md")),
        f"src/{package}/__init__.py": filled(_template(f"{kind}.py")),
        f"tests/test_{package}.py": filled(_template(f"test_{kind}.py")),
    }


def _template(name: str) -> str:
    return files("millstream.cli").joinpath("plugin_templates", f"{name}.txt").read_text(encoding="utf-8")
