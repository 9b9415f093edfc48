"""`millstream store`: the named values in the store of a pipeline. (`millstream state` shows the state of nodes.)"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags
from millstream.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from millstream.store.protocol import Store

store = typer.Typer(help="Show or delete values in the store of a pipeline: metadata, ledgers, values of plugins.", no_args_is_help=True)
Namespace = Annotated[str, typer.Argument(help="The owner of the values: the name of a node, or `ledger`.", show_default=False)]
Key = Annotated[str, typer.Argument(help="The value's name.", show_default=False)]


@store.callback()
def _group() -> None:
    """Group the commands for the store."""


@store.command("list")
def list_(
    pipeline: PipelineFile,
    namespace: Annotated[str | None, typer.Argument(help="List only the values of this namespace.", show_default=False)] = None,
    prefix: Annotated[str, typer.Option(help="List only values whose names start with this text.", show_default=False)] = "",
    config: ConfigFile = None,
    set_: SettingFlags = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object per value. This is the default in a pipe.")] = Format.text,
) -> None:
    """List the values: a table on a terminal, JSON lines in a pipe."""
    with _store_opened(pipeline, config, set_) as opened:
        entries = opened.list(namespace, prefix)
    if format is Format.json or not sys.stdout.isatty():
        for entry in entries:
            print(json.dumps({"namespace": entry.namespace, "key": entry.key, "value": entry.value, "updated_at": entry.updated_at}))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table("namespace", "key", "value", "updated", box=None, pad_edge=False, header_style="bold")
        for entry in entries:
            table.add_row(entry.namespace, entry.key, json.dumps(entry.value), entry.updated_at)
        Console().print(table)
    narrate(f"{len(entries)} {'value' if len(entries) == 1 else 'values'}")


@store.command()
def get(pipeline: PipelineFile, namespace: Namespace, key: Key, config: ConfigFile = None, set_: SettingFlags = None) -> None:
    """Print one value as JSON."""
    with _store_opened(pipeline, config, set_) as opened:
        value = opened.get(namespace, key)
    if value is None:
        raise UsageError(Diagnostic("MS119", f"there is no value `{key}` of `{namespace}`", help="`millstream store list` lists them"))
    print(json.dumps(value))


@store.command()
def rm(
    pipeline: PipelineFile,
    namespace: Namespace,
    key: Annotated[str | None, typer.Argument(help="The value's name. Default: all values of the namespace.", show_default=False)] = None,
    config: ConfigFile = None,
    set_: SettingFlags = None,
) -> None:
    """Delete a value, or all values of a namespace. A running pipeline may write it again."""
    with _store_opened(pipeline, config, set_) as opened:
        count = opened.delete(namespace, key)
    narrate(f"deleted {count} {'value' if count == 1 else 'values'}")
    if not count:
        raise typer.Exit(1)


@contextmanager
def _store_opened(pipeline: Path, config: Path | None, set_: list[str] | None) -> Iterator[Store]:
    from millstream.checkpoint.store import open_store

    found = open_store(load_or_fail(pipeline, config, setting_flags(set_), warn=False))
    if found is None:
        message = "this pipeline has no store: its checkpoint is not on this machine"
        raise UsageError(Diagnostic("MS119", message, help="`settings: {store: {backend: postgres}}` stores the values in a database"))
    try:
        yield found
    finally:
        found.close()
