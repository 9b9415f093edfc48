"""`millstream docs TYPE`: the page of a component or plugin, made from its class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.pipelines import PluginFiles
from millstream.errors import Diagnostic, UsageError, nearest
from millstream.registry import PLUGIN_KINDS, Registry


def docs(
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="A type, such as kafka or acme.lines.", show_default=False)],
    kind: Annotated[str, typer.Option(help="Only this kind, where a source and a sink have one type.")] = "",
    plugin: PluginFiles = None,
) -> None:
    """Print the page of a component or plugin: what it does, an example, its options."""
    from millstream.spec.component_page import component_page

    registry = Registry.installed().with_files(plugin or [], Path.cwd())
    found = [each for each in PLUGIN_KINDS if type_ in registry.types(each) and kind in ("", each)]
    if not found:
        known = {name for each in PLUGIN_KINDS for name in registry.types(each)}
        raise UsageError(Diagnostic("MS010", f"there is no type `{type_}`", help=nearest(type_, known)))
    print("\n".join(component_page(each, type_, registry.find(each, type_)) for each in found))
