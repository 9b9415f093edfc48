"""Workers and drivers are killed, the server crashes, in the middle of everything: the tables equal the changelog applied in memory.

The controls take one part of the protocol away and must show what it protects from: without the ledger rows come twice; without counting
what is staged, a crash of the server loses rows.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.chaos.arena import KILLS, SEED, Arena, chosen

from millstream.dev.postgres import NAME, Postgres, start_postgres

pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.timeout(2400 + 60 * KILLS)]
WORKERS = ["worker-copying", "worker-staged"]
DRIVERS = ["driver-collected", "driver-staged", "driver-claimed", "driver-merged", "driver-sent", "driver-committed"]
SAMPLE = [*WORKERS, "driver-collected", "driver-claimed", "driver-sent", "driver-committed", "server"]
PIPELINE = """
name: torture
connections: {{postgres: {{host: 127.0.0.1, port: {port}, database: {name}, user: {name}, password: {name}}}}}
sources:
  m: {{type: memory, rows_per_epoch: {per_epoch}, rows: {rows}}}
sinks:
  latest: {{type: postgres, from: m, table: latest, primary_key: id, commit_group: both}}
  log: {{type: postgres, from: m, table: log, mode: append, commit_group: both}}
settings: {{checkpoint: checkpoint, profile: short, restart: {{limit: {limit}, backoff: 200ms, max_backoff: 1s}}}}
"""


@dataclass
class PostgresArena(Arena):
    """A pipeline from a changelog to two tables, which change together."""

    server: Postgres = None  # type: ignore[assignment]  # always given
    rows: list[dict[str, Any]] = field(default_factory=list)

    def fill(self, rows: int, per_epoch: int) -> None:
        chance = random.Random(SEED)
        alive: set[int] = set()
        for seq in range(rows):
            id_ = chance.randrange(20)
            op = "i" if id_ not in alive else chance.choice("ud")
            (alive.discard if op == "d" else alive.add)(id_)
            self.rows.append({"id": id_, "v": seq, "_op": op, "_seq": seq})
        self.write(PIPELINE.format(port=self.server.port, name=NAME, per_epoch=per_epoch, rows=self.rows, limit=KILLS + 20))

    def crash(self) -> None:
        """The server goes down between staging and commit, as in a power cut, and comes back."""
        self.order("server")
        self.server.restart(signal.SIGQUIT)
        (self.folder / "deaths" / "restarted").touch()

    def expected(self) -> dict[int, int]:
        table: dict[int, int] = {}
        for row in self.rows:
            table.pop(row["id"], None)
            if row["_op"] != "d":
                table[row["id"]] = row["v"]
        return table

    def logged(self) -> list[int]:
        return [seq for (seq,) in self.ask("SELECT _seq FROM log ORDER BY _seq")]

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.address.text) as connection:
            return connection.execute(text).fetchall()


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[PostgresArena]:
    with start_postgres() as server:
        arena = PostgresArena(tmp_path, "postgres_victim.py", server=server)
        yield arena
        arena.stop()


def test_the_tables_equal_the_changelog(arena: PostgresArena) -> None:
    chance = random.Random(SEED)
    deaths = chosen(chance, SAMPLE, [*WORKERS, *DRIVERS, "server"])
    rows = 20 * (5 * len(deaths) + 4)
    arena.fill(rows, per_epoch=20)
    for death in deaths:
        arena.progress(chance.randrange(2))
        arena.crash() if death == "server" else arena.order(death)
    arena.end()
    print(f"seed {SEED}: {len(deaths)} kills, {arena.starts} starts of the driver")
    assert arena.logged() == list(range(rows))
    assert dict(arena.ask("SELECT id, v FROM latest")) == arena.expected()
    assert arena.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'millstream'") == [("ledger",)]


def test_without_the_ledger_rows_come_twice(arena: PostgresArena) -> None:
    arena.variant = "no_ledger"
    arena.fill(rows=60, per_epoch=20)
    arena.order("driver-committed")
    arena.end()
    print(f"without the ledger: {len(arena.logged()) - 60} twice")
    assert len(arena.logged()) > 60


def test_without_counting_a_crash_loses_rows(arena: PostgresArena) -> None:
    arena.variant = "no_count"
    arena.fill(rows=60, per_epoch=20)
    arena.crash()
    arena.end()
    print(f"without counting: {60 - len(arena.logged())} lost")
    assert len(arena.logged()) < 60
