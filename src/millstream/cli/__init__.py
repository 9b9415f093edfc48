"""The command line. Results go to stdout, narration to stderr; every known failure is one message and an exit code.

0 done   1 pipeline failed   2 usage   70 our bug   75 temporary   78 configuration   130, 143 stopped by a signal
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

gc.disable()  # importing makes no garbage worth looking for, and looking costs a tenth of a short command; `run` enables it again

import typer  # noqa: E402

from millstream.cli.examples import epilog  # noqa: E402
from millstream.cli.output import fail  # noqa: E402

COMMANDS = (
    *("run", "check", "plan", "graph", "test", "init", "doctor", "fetch", "schema", "explain"),
    *("checkpoint", "state", "store", "table", "dev"),
)
"""One module each, of the same name: a function, or a group of commands."""


def application(only: str | None = None) -> typer.Typer:
    """All commands, or the one that is wanted: building the others would double the time of a short one."""
    app = typer.Typer(
        name="millstream",
        help="Streaming pipelines in Python or YAML, exactly once, on Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [only] if only in COMMANDS else COMMANDS:
        command = getattr(import_module(f"millstream.cli.{name}"), str(name))
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.epilog = epilog(f"{name} {each.name or getattr(each.callback, '__name__', '')}")
            app.add_typer(command, name=name)
        else:
            app.command(epilog=epilog(str(name)))(command)
    app.callback()(_version)
    return app


def main() -> None:
    """The entry point."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        application(next(iter(arguments), None))(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 — the last place where anything can be caught
        sys.exit(fail(error, debug))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"millstream {version('millstream')}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True, callback=_print_version),
    debug: bool = typer.Option(False, "--debug", help="Show the whole trace of a failure. It can stand anywhere in the command."),
) -> None:
    """Options of the command line as a whole."""
