"""`millstream check`: report all mistakes of pipelines, without Java unless `--spark` asks for it.

The only servers that a check contacts are those that know columns: Postgres and schema registries. If a server does not answer within two
seconds, the check reports a warning.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.completion import pipeline_files
from millstream.cli.folders import Found, find_pipelines
from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, PluginFiles, plugin_flags
from millstream.errors import Diagnostic, MillstreamError

if TYPE_CHECKING:
    from millstream.plan.topology import Topology


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings in one file."""

    file: Path
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...] = ()
    transforms: tuple[str, ...] = ()
    verified: frozenset[str] = frozenset()
    """The transforms that Spark has analysed, now or in an earlier check."""

    @property
    def verdict(self) -> str:
        text = _count(len(self.errors), "error") if self.errors else "no errors"
        text += f", {_count(len(self.warnings), 'warning')}" if self.warnings else ""
        if not self.verified:
            return text
        every = len(self.verified) == len(self.transforms)
        return f"{text}; Spark has analysed {'all' if every else f'{len(self.verified)} of {len(self.transforms)}'} transforms"


def check(
    pipelines: Annotated[
        list[Path],
        typer.Argument(help="Pipeline files, or folders with pipeline files.", show_default=False, autocompletion=pipeline_files),
    ],
    config: ConfigFile = None,
    plugin: PluginFiles = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
    deny_warnings: Annotated[bool, typer.Option(help="Treat warnings as errors.")] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Ask Spark too, which starts a JVM. Later checks repeat its answers while nothing has changed.")
    ] = False,
    types: Annotated[bool, typer.Option("--types", help="Ask TypeScript's compiler about scripts, where it is installed.")] = False,
) -> None:
    """Check pipelines: fields, names, inputs, columns, SQL. A check needs no Java.

    A folder means all pipelines in it and below it. For a file without errors, the check reads the columns of Postgres sources and schema
    registries from their servers. If a server does not answer within two seconds, there is a warning. No other server is contacted.

    What only Spark can know (types of expressions, functions' arguments, whether a query can be kept up to date) is checked with `--spark`.
    """
    _import_without_numpy()
    found = find_pipelines(pipelines)
    results = [_check_file(path, config, spark, types, plugin_flags(plugin)) for path in found.files]
    errors = [*found.problems, *(error for each in results for error in each.errors)]
    warnings = [warning for each in results for warning in each.warnings]
    if format is Format.json:
        print(json.dumps(_document(results, errors, warnings, found), indent=2))
    else:
        show([*errors, *warnings])
        narrate("\n".join(_verdicts(results, found)))
    if errors or (warnings and deny_warnings):
        raise typer.Exit(78 if format is Format.text else 1)


def _check_file(path: Path, config: Path | None, spark: bool, types: bool, flags: Mapping[str, str]) -> Checked:
    from millstream.rules.verdicts import UNREAD, Known, recall
    from millstream.spec.loader import case_problems, load

    loaded = load(path, environ=os.environ, config=config, flags=flags)
    cases = case_problems(loaded.topology) if loaded.topology else []
    remote = _check_remote_schemas(loaded.topology) if loaded.topology and not loaded.errors else []
    topology = loaded.topology if not (loaded.errors or cases or any(finding.level == "error" for finding in remote)) else None
    told_by_spark = _ask_spark(topology, path) if spark and topology is not None else ()
    in_scripts = _check_scripts(topology) if types and topology is not None else []
    known = recall(topology) if topology is not None else Known()
    told = [finding for finding in loaded.diagnostics if finding.code != UNREAD or finding.node not in known.verified]
    new = [finding for finding in dict.fromkeys((*remote, *in_scripts, *told_by_spark, *known.findings)) if finding not in told]
    errors, warnings = ([finding for finding in (*told, *cases, *new) if finding.level == level] for level in ("error", "warning"))
    transforms = tuple(node.name for node in topology.transforms) if topology is not None else ()
    return Checked(path, tuple(errors), tuple(warnings), transforms, known.verified)


def _check_scripts(topology: Topology) -> list[Diagnostic]:
    from millstream.cli.script_types import script_findings

    return script_findings(topology)


def _ask_spark(topology: Topology, path: Path) -> tuple[Diagnostic, ...]:
    """Analyse the plan with Spark, and store what it says about transforms."""
    from millstream.engine.offline.preview import view
    from millstream.rules.verdicts import UNREAD, store

    narrate(f"analysing {path} with Spark …")
    seen = view(topology)
    store(topology, seen.findings, seen.schemas)
    return tuple(finding for finding in seen.findings if finding.code != UNREAD)


def _check_remote_schemas(topology: Topology) -> list[Diagnostic]:
    """The findings that need columns from servers."""
    from millstream.clients.storage import is_local, open_storage
    from millstream.plan.run_options import checkpoint_of
    from millstream.rules.previews import check_previews

    warnings: list[Diagnostic] = []
    try:
        url = checkpoint_of(topology)
    except MillstreamError as error:  # a run would fail, but the pipeline may be correct
        url, warnings = "", [replace(finding, level="warning") for finding in error.diagnostics]
    return [*warnings, *check_previews(topology, open_storage(url if url and is_local(url) else ".millstream/none"))]


def _document(results: list[Checked], errors: list[Diagnostic], warnings: list[Diagnostic], found: Found) -> dict[str, Any]:
    """The JSON object. `success`: the check itself worked. `is_valid`: there are no errors. `files`: the findings of each file,
    and which of its transforms Spark has analysed.
    """
    return {
        "success": True,
        "is_valid": not errors,
        "errors": [error.as_dict() for error in errors],
        "warnings": [warning.as_dict() for warning in warnings],
        "files": [
            {
                "file": str(each.file),
                "is_valid": not each.errors,
                "errors": [error.as_dict() for error in each.errors],
                "warnings": [warning.as_dict() for warning in each.warnings],
                "verified": sorted(each.verified),
                "unverified": sorted(set(each.transforms) - each.verified),
            }
            for each in results
        ],
        "skipped": [{"file": str(path), "reason": reason} for path, reason in found.skipped],
    }


def _verdicts(results: list[Checked], found: Found) -> list[str]:
    """One line for each pipeline and, if there are several, a line with totals."""
    if len(results) == 1 and not found.skipped and not found.problems:
        return [f"{_mark(not results[0].errors)} {results[0].file}: {results[0].verdict}"]
    width = max((len(str(path)) for path in (*found.files, *(path for path, _ in found.skipped))), default=0)
    lines = [f"  {_mark(not each.errors)} {each.file!s:<{width}}  {each.verdict}" for each in results]
    lines += [f"  · {path!s:<{width}}  skipped: {reason}" for path, reason in found.skipped]
    wrong = sum(bool(each.errors) for each in results)
    totals = [f"{wrong} with errors" if wrong else "no errors"] if results else []
    totals += [f"{_count(len(found.skipped), 'file')} skipped"] if found.skipped else []
    return [*lines, f"{_mark(not wrong and not found.problems)} {_count(len(results), 'pipeline')}: {', '.join(totals)}".removesuffix(": ")]


def _mark(valid: bool) -> str:
    return "✓" if valid else "✗"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _import_without_numpy() -> None:
    """Import PyArrow without NumPy, which a check does not need. This saves a third of the start time."""
    if "pyarrow" not in sys.modules and "numpy" not in sys.modules:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # the documented way to make an import fail
        try:
            import pyarrow  # noqa: F401
        finally:
            del sys.modules["numpy"]
