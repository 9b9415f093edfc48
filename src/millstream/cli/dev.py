"""`millstream dev`: temporary servers for development. The address goes to stdout. Ctrl-C stops the server."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from millstream.cli.output import narrate

dev = typer.Typer(help="Start temporary servers on this machine.", no_args_is_help=True)
_TICK_SECONDS = 0.2


@dev.callback()
def _group() -> None:
    """Group the commands for servers."""


@dev.command()
def kafka(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 9092,
    registry: Annotated[bool, typer.Option(help="Also start a schema registry, and print its address in a second line.")] = False,
    registry_port: Annotated[int, typer.Option(min=0, max=65535, help="The registry's port; 0 takes a free one.")] = 8081,
) -> None:
    """Start a Kafka broker and print its address. Ctrl-C stops it and deletes its data."""
    from millstream.dev.broker_jars import KAFKA
    from millstream.dev.kafka import start_broker
    from millstream.dev.registry import APICURIO, start_registry

    _handle_signals()
    with ExitStack() as servers:
        broker = servers.enter_context(start_broker(port, progress=narrate))
        second = servers.enter_context(start_registry(registry_port, progress=narrate)) if registry else None
        print(broker.address, flush=True)
        if second is not None:
            print(second.url, flush=True)
        also = f" with Apicurio {APICURIO}" if registry else ""
        narrate(f"Kafka {KAFKA}{also} is ready; Ctrl-C stops it and deletes its data")
        if _wait_for_interrupt(lambda: broker.running and (second is None or second.running)):
            return
        ended = "registry" if broker.running else "broker"
    narrate(f"the {ended} has stopped unexpectedly")
    raise typer.Exit(1)


@dev.command()
def postgres(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 5432,
) -> None:
    """Start a Postgres server and print its address. Ctrl-C stops it and deletes its data."""
    from millstream.dev.postgres import start_postgres

    _handle_signals()
    with start_postgres(port, progress=narrate) as server:
        narrate(f"Postgres {server.version} is ready; Ctrl-C stops it and deletes its data")
        print(server.uri, flush=True)
        if _wait_for_interrupt(lambda: server.running):
            return
    narrate("the server has stopped unexpectedly")
    raise typer.Exit(1)


def _handle_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # shells start background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)


def _wait_for_interrupt(running: Callable[[], bool]) -> bool:
    """Wait until the user stops the server; False when it has stopped without that."""
    try:
        while running():
            time.sleep(_TICK_SECONDS)
    except KeyboardInterrupt:
        narrate("stopped")
        return True
    return False
