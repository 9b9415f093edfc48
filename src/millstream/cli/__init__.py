"""The command line. Results go to stdout, narration to stderr; every known failure is one message and an exit code.

0 done   1 pipeline failed   2 usage   70 our bug   75 temporary   78 configuration   130, 143 stopped by a signal
"""

from __future__ import annotations

import os
import sys

import typer

from millstream.cli.output import fail


def application() -> typer.Typer:
    """All commands. Their modules import what they need when they run."""
    from millstream.cli.check import check
    from millstream.cli.doctor import doctor
    from millstream.cli.explain import explain
    from millstream.cli.fetch import fetch
    from millstream.cli.graph import graph
    from millstream.cli.init import init
    from millstream.cli.plan import plan
    from millstream.cli.run import run
    from millstream.cli.schema import schema
    from millstream.cli.test import test

    app = typer.Typer(
        name="millstream",
        help="Streaming pipelines in Python or YAML, exactly once, on Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in (run, check, plan, graph, test, init, doctor, fetch, schema, explain):
        app.command()(command)
    app.callback()(_version)
    return app


def main() -> None:
    """The entry point."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        application()(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 — the last place where anything can be caught
        sys.exit(fail(error, debug))


def _version(version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True)) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"millstream {installed('millstream')}")
        raise typer.Exit
