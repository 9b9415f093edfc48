"""`millstream test`: run the tests inside pipeline files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.completion import pipeline_files
from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PluginFiles, load_or_fail, plugin_flags
from millstream.errors import SpecError

if TYPE_CHECKING:
    from millstream.testing.cases import Outcome


def test(
    pipelines: Annotated[list[Path], typer.Argument(help="Pipeline files.", show_default=False, autocompletion=pipeline_files)],
    config: ConfigFile = None,
    plugin: PluginFiles = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Run the tests in the section `tests` of pipeline files."""
    from millstream.spec.loader import case_problems

    topologies = [load_or_fail(path, config, plugin_flags(plugin)) for path in pipelines]
    problems = [problem for topology in topologies for problem in case_problems(topology)]
    if problems:
        raise SpecError(problems)
    if not any(topology.tests for topology in topologies):
        narrate("there are no tests: add a section `tests` to the pipeline")
        return
    from millstream.testing import run
    from millstream.testing.cases import run_case

    outcomes = []
    for topology in topologies:
        for case in topology.tests:
            outcomes.append(run_case(topology, case, run))
            if format is Format.text:
                print(_text(outcomes[-1]))
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if format is Format.json:
        print(
            json.dumps(
                {
                    "passed": len(outcomes) - len(failed),
                    "failed": len(failed),
                    "tests": [_document(outcome) for outcome in outcomes],
                },
                indent=2,
            )
        )
    else:
        print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)


def _text(outcome: Outcome) -> str:
    name = outcome.case.options.name
    if outcome.passed:
        return f"✓ {name}"
    place = f" ({outcome.case.span.file}:{outcome.case.span.line})" if outcome.case.span else ""
    lines = [f"✗ {name}{place}"]
    for node, difference in outcome.differences.items():
        lines.append(f"  {node}  (- expected but missing, + present but not expected)")
        lines += [f"    {line}" for line in difference]
    return "\n".join(lines)


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.case.options.name,
        "passed": outcome.passed,
        "differences": {node: list(lines) for node, lines in outcome.differences.items()},
    }
