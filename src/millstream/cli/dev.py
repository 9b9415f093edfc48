"""`millstream dev`: throwaway servers for trying things out. The address goes to stdout; the server lives until Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from millstream.cli.output import narrate

dev = typer.Typer(help="Start throwaway servers on this machine.", no_args_is_help=True)
_TICK_SECONDS = 0.2


@dev.callback()
def _group() -> None:
    """Servers for trying things out."""


@dev.command()
def kafka(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 9092,
    registry: Annotated[bool, typer.Option(help="Start a schema registry too, and print its address after the broker's.")] = False,
    registry_port: Annotated[int, typer.Option(min=0, max=65535, help="The registry's port; 0 takes a free one.")] = 8081,
) -> None:
    """Start a Kafka broker, print its address, and stop it on Ctrl-C. Its data goes with it."""
    from millstream.dev.broker_jars import KAFKA
    from millstream.dev.kafka import start_broker
    from millstream.dev.registry import APICURIO, start_registry

    _listen()
    with ExitStack() as servers:
        broker = servers.enter_context(start_broker(port, progress=narrate))
        beside = servers.enter_context(start_registry(registry_port, progress=narrate)) if registry else None
        print(broker.address, flush=True)
        if beside is not None:
            print(beside.url, flush=True)
        also = f" with Apicurio {APICURIO}" if registry else ""
        narrate(f"Kafka {KAFKA}{also} is ready; Ctrl-C stops it and removes its data")
        if _served(lambda: broker.running and (beside is None or beside.running)):
            return
        ended = "registry" if broker.running else "broker"
    narrate(f"the {ended} has ended by itself")
    raise typer.Exit(1)


@dev.command()
def postgres(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 5432,
) -> None:
    """Start a Postgres server, print its address, and stop it on Ctrl-C. Its data goes with it."""
    from millstream.dev.postgres import start_postgres

    _listen()
    with start_postgres(port, progress=narrate) as server:
        narrate(f"Postgres {server.version} is ready; Ctrl-C stops it and removes its data")
        print(server.uri, flush=True)
        if _served(lambda: server.running):
            return
    narrate("the server has ended by itself")
    raise typer.Exit(1)


def _listen() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs begin with the first one ignored
        signal.signal(number, signal.default_int_handler)


def _served(running: Callable[[], bool]) -> bool:
    """Whether it was the user who ended it."""
    try:
        while running():
            time.sleep(_TICK_SECONDS)
    except KeyboardInterrupt:
        narrate("stopped")
        return True
    return False
