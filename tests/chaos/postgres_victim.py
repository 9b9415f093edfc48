"""A pipeline in a process of its own, that dies where it is told: `postgres_victim.py PIPELINE DEATHS VARIANT`.

`variant` takes away one part of the protocol, for the controls: what it protects from must then be seen to happen. Without one, epochs go
in turns both ways, with the merge and through staging tables, and the sinks of a group not always the same one. An epoch that is repeated
may go the other way.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import psycopg
from tests.chaos.arena import chance_of_start, ordered

from millstream.connectors.postgres.worker import staging
from millstream.connectors.postgres.write import commit
from millstream.connectors.postgres.write.given_rows import SmallWay
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.engine.engine import SparkEngine
from millstream.plan.run_options import RunOptions
from millstream.spec.files import load_pipeline


def mortal_worker(deaths: str) -> Callable[..., Any]:
    stage = staging._stage

    def told(name: str) -> bool:
        try:
            os.unlink(os.path.join(deaths, name))  # noqa: PTH108, PTH118 — it travels to the workers, which have os and little else
        except FileNotFoundError:
            return False
        return True

    def dying(others: Iterator[Any]) -> Iterator[Any]:
        if told("worker-copying"):
            os._exit(9)
        yield from others

    def wrapped(job: Any, first: Any, others: Any) -> Any:
        attempt = stage(job, first, dying(others))
        if told("worker-staged"):
            os._exit(9)
        return attempt

    return wrapped


def mortal_driver(deaths: str) -> Any:
    merge, commit_works, collect, sync = commit._merge, commit.commit, SmallWay.collect, psycopg.Pipeline.sync
    chance = chance_of_start()

    def end() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def die(point: str) -> None:
        if ordered(deaths, f"driver-{point}"):
            end()

    def collected(way: SmallWay, *arguments: Any) -> Any:
        found = collect(way, *arguments)
        die("collected")
        return found

    def synced(pipeline: psycopg.Pipeline) -> None:
        if ordered(deaths, "driver-sent"):  # somewhere between the first statement and the answer to the commit
            threading.Timer(chance.random() * 0.004, end).start()
            sync(pipeline)
            time.sleep(1)
        sync(pipeline)

    def merging(connection: Any, work: Any, epoch: Any) -> None:
        die("claimed")
        merge(connection, work, epoch)
        die("merged")

    def committed(works: Any, *begin: Any) -> None:
        if ordered(deaths, "server"):  # somebody restarts it meanwhile
            waited = time.monotonic() + 400
            while not ordered(deaths, "restarted") and time.monotonic() < waited:
                time.sleep(0.02)
        die("staged")
        commit_works(works, *begin)
        die("committed")

    commit._merge = merging
    SmallWay.collect = collected  # type: ignore[method-assign]
    psycopg.Pipeline.sync = synced  # type: ignore[method-assign]
    return committed


def take_turns() -> Callable[[SmallWay], bool]:
    """Whether a sink's next epoch is collected: the first sink every other time, the second one every other two times."""
    epochs: dict[int, int] = {}
    first = chance_of_start().randrange(4)

    def is_open(way: SmallWay) -> bool:
        epochs.setdefault(id(way), first)
        epochs[id(way)] += 1
        return bool(epochs[id(way)] >> [*epochs].index(id(way)) & 1)

    return is_open


def main(pipeline: str, deaths: str, variant: str) -> None:
    os.chdir(Path(pipeline).parent)
    staging._stage = mortal_worker(deaths)
    commit.commit = mortal_driver(deaths)
    if variant == "no_ledger":
        Ledger.claim = lambda self, connection, epoch: True  # type: ignore[method-assign]  # that is the control
        Ledger.read = lambda self, connection, epoch: None  # type: ignore[method-assign]  # that is the control
    SmallWay.is_open = take_turns() if not variant else lambda _: variant != "no_count"  # type: ignore[method-assign]
    if variant == "no_count":
        commit._require_rows = lambda connection, work, epoch: None  # type: ignore[assignment]  # that is the control
    SparkEngine().run(load_pipeline(Path(pipeline)), RunOptions())


if __name__ == "__main__":
    main(*sys.argv[1:])
