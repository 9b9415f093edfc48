"""`millstream checkpoint`: list, verify and copy checkpoints."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.checkpoint_argument import Target, place_of
from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, SettingFlags
from millstream.units import size_of

if TYPE_CHECKING:
    from millstream.checkpoint.inventory import Inventory

checkpoint = typer.Typer(help="List, verify and copy checkpoints of stopped pipelines.", no_args_is_help=True)
AsFormat = Annotated[Format, typer.Option(help="`json` prints one object on stdout.")]


@checkpoint.callback()
def _group() -> None:
    """Group the commands for checkpoints."""


@checkpoint.command("list")
def list_(
    target: Target,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    offline: Annotated[bool, typer.Option(help="Do not start Spark. The rows of state are not counted then.")] = False,
    format: AsFormat = Format.text,
) -> None:
    """List the queries, their last committed epoch and their state."""
    from millstream.checkpoint.inventory import take_stock
    from millstream.engine.offline.access import open_checkpoint

    place = place_of(target, config, set_)
    with open_checkpoint(place, held=False) as found:
        inventory = take_stock(found.checkpoint)
    if not offline and any(query.operators for query in inventory.queries):
        inventory = _count_state_rows(place)
    if format is Format.json:
        print(json.dumps(_document(inventory), indent=2))
    elif sys.stdout.isatty():
        _table(inventory)
    else:
        print("\n".join("\t".join(map(str, line)) for line in _lines(inventory)))


@checkpoint.command()
def verify(target: Target, config: ConfigFile = None, set_: SettingFlags = None, format: AsFormat = Format.text) -> None:
    """Read all entries of all logs and the state of the last committed epoch. The exit code is 1 when something is damaged."""
    from millstream.checkpoint.verification import damages
    from millstream.engine.offline.access import open_checkpoint
    from millstream.errors import RunError

    with open_checkpoint(place_of(target, config, set_)) as found:
        damage, queries = damages(found.checkpoint), found.checkpoint.queries()
    if format is Format.json:
        print(json.dumps({"ok": not damage, "damages": [finding.as_dict() for finding in damage]}, indent=2))
    if damage:
        raise RunError(damage)
    narrate(f"✓ no damage: {len(queries)} {'query' if len(queries) == 1 else 'queries'} ({', '.join(queries) or 'none'})")


@checkpoint.command()
def copy(
    target: Target,
    copy_folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that does not exist.", show_default=False)],
    config: ConfigFile = None,
    set_: SettingFlags = None,
    format: AsFormat = Format.text,
) -> None:
    """Copy the checkpoint of a stopped pipeline: a savepoint. `settings.checkpoint` can name the copy."""
    from millstream.checkpoint import savepoint
    from millstream.engine.offline.access import open_checkpoint

    with open_checkpoint(place_of(target, config, set_)) as found:
        copied = savepoint.copy(found.checkpoint, found.storage(copy_folder))
    if format is Format.json:
        print(json.dumps(asdict(copied)))
    else:
        narrate(f"✓ copied {copied.files} files, {size_of(copied.bytes)}; use it with `--checkpoint {copy_folder}`")


def _count_state_rows(place: Any) -> Inventory:
    from millstream.checkpoint.inventory import take_stock
    from millstream.engine.offline.access import open_checkpoint

    narrate("counting the rows of state with Spark …")
    with open_checkpoint(place, spark=True, held=False) as found:
        from millstream.checkpoint.state_reader import with_row_counts

        assert found.spark is not None
        return with_row_counts(found.spark, take_stock(found.checkpoint), found.checkpoint)


def _document(inventory: Inventory) -> dict[str, Any]:
    document = asdict(inventory)
    for query, seen in zip(document["queries"], inventory.queries, strict=True):
        query["operators"] = [
            {"id": operator.id, "kind": operator.kind, "rows": operator.rows, "bytes": operator.bytes, "partitions": operator.partitions}
            for operator in seen.operators
        ]
    return document


def _lines(inventory: Inventory) -> list[tuple[Any, ...]]:
    lines: list[tuple[Any, ...]] = [("checkpoint", inventory.url, inventory.pipeline, inventory.bytes)]
    for query in inventory.queries:
        lines.append(("query", query.name, query.planned, query.committed, query.bytes, query.finished or "-"))
        lines += [
            ("state", query.name, operator.id, operator.kind, "-" if operator.rows is None else operator.rows, operator.bytes)
            for operator in query.operators
        ]
    return lines


def _table(inventory: Inventory) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{inventory.pipeline or '?'}[/] in {inventory.url}, {size_of(inventory.bytes)}", highlight=False)
    table = Table("query", "committed", "size", "state", box=None, pad_edge=False, header_style="dim")
    for query in inventory.queries:
        epoch = f"epoch {query.committed}" if query.committed >= 0 else "none"
        half = f", {query.planned} half done" if query.planned > query.committed else ""
        done = f", finished {query.finished[:19]}" if query.finished else ""
        state = ", ".join(_state(operator) for operator in query.operators) or "-"
        table.add_row(query.name, f"{epoch}{half}{done}", size_of(query.bytes), state)
    console.print(table)


def _state(operator: Any) -> str:
    rows = "" if operator.rows is None else f" {operator.rows:,} rows,"
    return f"{operator.kind}:{rows} {size_of(operator.bytes)}"
