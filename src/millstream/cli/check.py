"""`millstream check`: everything that is wrong with a pipeline, in a moment, without Java.

One thing is asked for: columns that others keep, those of Postgres tables and of subjects in a schema registry. A server that does not
answer within two seconds is a warning.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile
from millstream.errors import Diagnostic, MillstreamError

if TYPE_CHECKING:
    from millstream.plan.topology import Topology


def check(
    pipelines: Annotated[list[Path], typer.Argument(help="Pipeline files.", show_default=False)],
    config: ConfigFile = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
    deny_warnings: Annotated[bool, typer.Option(help="Warnings count as errors.")] = False,
) -> None:
    """Check pipelines: fields, names, inputs, columns, SQL. Needs no Java. When the file itself is right, Postgres sources and schema
    registries are asked for their columns, for two seconds at most; one that does not answer is a warning. Nothing else is contacted.
    """
    _without_numpy()
    from millstream.spec.loader import case_problems, load

    errors: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    for path in pipelines:
        loaded = load(path, environ=os.environ, config=config)
        cases = case_problems(loaded.topology) if loaded.topology else []
        seen = _previewed(loaded.topology) if loaded.topology and not loaded.errors else []
        new = [finding for finding in seen if finding not in loaded.diagnostics]
        errors += [*loaded.errors, *cases, *(finding for finding in new if finding.level == "error")]
        warnings += [*loaded.warnings, *(finding for finding in new if finding.level == "warning")]
    if format is Format.json:
        print(json.dumps(_contract(errors, warnings), indent=2))
    else:
        show([*errors, *warnings])
        narrate(_verdict(pipelines, errors, warnings))
    if errors or (warnings and deny_warnings):
        raise typer.Exit(78 if format is Format.text else 1)


def _previewed(topology: Topology) -> list[Diagnostic]:
    """What the schemas that are kept elsewhere add."""
    from millstream.clients.storage import is_local, open_storage
    from millstream.plan.previews import previewed
    from millstream.plan.running import checkpoint_of

    elsewhere: list[Diagnostic] = []
    try:
        url = checkpoint_of(topology)
    except MillstreamError as error:  # a run would stop there; the pipeline itself may be right
        url, elsewhere = "", [replace(finding, level="warning") for finding in error.diagnostics]
    return [*elsewhere, *previewed(topology, open_storage(url if url and is_local(url) else ".millstream/none"))]


def _contract(errors: list[Diagnostic], warnings: list[Diagnostic]) -> dict[str, Any]:
    """`success`: the check itself worked. `is_valid`: the pipelines are right."""
    return {
        "success": True,
        "is_valid": not errors,
        "errors": [error.as_dict() for error in errors],
        "warnings": [warning.as_dict() for warning in warnings],
    }


def _verdict(pipelines: list[Path], errors: list[Diagnostic], warnings: list[Diagnostic]) -> str:
    what = str(pipelines[0]) if len(pipelines) == 1 else f"{len(pipelines)} pipelines"
    if errors:
        return f"✗ {what}: {_count(len(errors), 'error')}" + (f", {_count(len(warnings), 'warning')}" if warnings else "")
    return f"✓ {what}: no errors" + (f", {_count(len(warnings), 'warning')}" if warnings else "")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _without_numpy() -> None:
    """PyArrow imports NumPy for conversions that a check never makes. Leaving it out saves a third of the start-up."""
    if "pyarrow" not in sys.modules and "numpy" not in sys.modules:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # the documented way to make an import fail
        try:
            import pyarrow  # noqa: F401
        finally:
            del sys.modules["numpy"]
