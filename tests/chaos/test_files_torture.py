"""A windowed query from files to two sinks is killed wherever it writes: each window is in both sinks once.

The control takes the ledger away and must show windows that come twice. `make test` has a cheaper sample, which ends in the shared session:
`tests/engine/test_exactly_once.py` and `tests/stateful/test_killed_windows.py`.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.chaos.arena import KILLS, SEED, Arena, chosen

from millstream import committed_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2400 + 60 * KILLS), pytest.mark.skipif(not KILLS, reason="only in `make chaos`")]
DRIVERS = ["driver-staging", "driver-staged", "driver-between", "driver-committed"]
PIPELINE = """
name: torture
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {user: int64, at: timestamp}
    mode: {type: bounded}
    max_files_per_epoch: 1
    event_time: {column: at, watermark: 5s}
transforms:
  counted: {type: window, from: clicks, key_by: [user], window: {type: tumbling, size: 10s}, aggregate: {n: count(*)}, late: drop}
sinks:
  one: {type: file, from: counted, path: out/one, format: json}
  two: {type: file, from: counted, path: out/two, format: json}
settings: {checkpoint: checkpoint, profile: short, state_partitions: 2}
"""
Windows = Counter[tuple[int, str, int]]


@dataclass
class FilesArena(Arena):
    """A pipeline from a folder, one minute in each file, to two folders."""

    minutes: int = 0

    def fill(self, minutes: int) -> None:
        self.minutes = minutes
        (self.folder / "in").mkdir()
        for minute in range(minutes):
            path = self.folder / f"in/{minute:03}.json"
            path.write_text("".join(json.dumps({"user": i % 3, "at": at(minute, i)}) + "\n" for i in range(0, 60, 4)))
            os.utime(path, (1_700_000_000 + minute, 1_700_000_000 + minute))  # read in this order
        self.write(PIPELINE)

    def windows(self, sink: str) -> Windows:
        lines = [line for file in committed_files(str(self.folder / "out" / sink)) for line in Path(file).read_text().splitlines()]
        return Counter((row["user"], row["window_start"], row["n"]) for row in map(json.loads, lines))

    def expected(self) -> Windows:
        seen = Counter((i % 3, at(minute, i // 10 * 10, ".000000")) for minute in range(self.minutes) for i in range(0, 60, 4))
        return Counter((user, window, n) for (user, window), n in seen.items())


def at(minute: int, second: int, fraction: str = "") -> str:
    return f"2024-01-01T{minute // 60:02}:{minute % 60:02}:{second:02}{fraction}Z"


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[FilesArena]:
    arena = FilesArena(tmp_path, "files_victim.py")
    yield arena
    arena.stop()


def test_every_window_is_in_both_sinks_once(arena: FilesArena) -> None:
    chance = random.Random(SEED)
    deaths = chosen(chance, DRIVERS, DRIVERS)
    arena.fill(2 * len(deaths) + 3)
    for death in deaths:
        arena.progress(chance.randrange(2))
        arena.order(death)
    arena.end()
    print(f"seed {SEED}: {len(deaths)} kills, {arena.starts} starts of the driver")
    assert arena.windows("one") == arena.windows("two") == arena.expected()


def test_without_the_ledger_windows_come_twice(arena: FilesArena) -> None:
    arena.variant = "no_ledger"
    arena.fill(3)
    arena.progress(1)
    arena.order("driver-committed")
    arena.end()
    twice = sum((arena.windows("one") - arena.expected()).values())
    print(f"without the ledger: {twice} twice")
    assert twice > 0
