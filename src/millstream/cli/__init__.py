"""The command line. Results go to stdout, narration to stderr. Every known failure has one message and an exit code.

0 done   1 pipeline failed   2 usage   70 our bug   75 temporary   78 configuration   130, 143 stopped by a signal
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

gc.disable()  # imports create little garbage, and collecting it takes a tenth of the time of a short command; `run` enables it again

import typer  # noqa: E402

from millstream.cli.examples import epilog  # noqa: E402
from millstream.cli.inspect_option import complete_inspect  # noqa: E402
from millstream.cli.output import fail  # noqa: E402

COMMANDS = (
    *("run", "check", "plan", "preview", "graph", "test", "init", "doctor", "fetch", "schema"),
    *("functions", "types", "plugin", "docs", "explain"),
    *("list", "top", "tap", "inspect", "stop", "pause", "resume", "savepoint"),
    *("checkpoint", "state", "store", "table", "dev"),
)
"""Each command is a module with a function, or a group of commands, of the same name; one that Python knows has a `_` behind it."""


def application(only: str | None = None) -> typer.Typer:
    """The application with all commands, or with one: to build all of them would double the time of a short command."""
    app = typer.Typer(
        name="millstream",
        help="Streaming pipelines in Python or YAML, exactly once, on Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [only] if only in COMMANDS else COMMANDS:
        module = import_module(f"millstream.cli.{name}")
        command = getattr(module, str(name), None) or getattr(module, f"{name}_")
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.epilog = epilog(f"{name} {each.name or getattr(each.callback, '__name__', '')}")
            app.add_typer(command, name=name)
        else:
            app.command(str(name), epilog=epilog(str(name)))(command)
    app.callback()(_version)
    return app


def main() -> None:
    """Run the command of `sys.argv`: the entry point."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    arguments = complete_inspect(arguments)
    try:
        application(next(iter(arguments), None))(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 — nothing above this could catch it
        sys.exit(fail(error, debug))
    finally:
        exec("")  # Python ends by SIGINT instead of exit code 130 when Ctrl-C came in an `exec`, until the next `exec`


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"millstream {version('millstream')}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    debug: bool = typer.Option(False, "--debug", help="Show the stack trace of a failure. The option can be anywhere in the command."),
) -> None:
    """Define the options of `millstream` itself."""
