"""Workers, drivers and the broker are killed in the middle of everything, and each row is in the topic once, in the order of its key.

The controls run the same harness with one part of the protocol taken away. They must show what that part protects from: a harness that
sees no duplicates without markers, and no losses with lanes by chance, would prove nothing.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.chaos.arena import SEED, Arena
from tests.servers.kafka import Cluster

from millstream.dev.kafka import start_broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2400)]
WORKERS = ["worker-opened", "worker-producing", "worker-produced", "worker-committed"]
DRIVERS = ["driver-between", "driver-committed", "driver-produced"]
PIPELINE = """
name: torture
connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
sources:
  m: {{type: kafka, topic: in, format: json, mode: {{type: bounded}}, schema: {{k: string, n: int64}}, max_rows_per_epoch: {rows}}}
sinks:
  out: {{type: kafka, from: m, topic: out, key: k, lanes: 4}}
settings: {{checkpoint: checkpoint, profile: short, restart: {{limit: 20, backoff: 200ms, max_backoff: 1s}}}}
"""


@dataclass
class KafkaArena(Arena):
    """A pipeline between two topics."""

    cluster: Cluster = None  # type: ignore[assignment]  # always given

    def fill(self, rows: int, per_epoch: int) -> None:
        self.cluster.topic(2, name="in")
        self.cluster.topic(4, name="out")
        for partition in range(2):
            keys = ({"k": f"{partition}-{n % 11}", "n": n} for n in range(rows // 2))
            self.cluster.send("in", keys, partition)
        self.write(PIPELINE.format(address=self.cluster.address, rows=per_epoch))

    def seen(self) -> dict[str, list[int]]:
        """Key → its numbers, in the order of the topic."""
        found: dict[str, list[int]] = {}
        for message in self.cluster.messages("out"):
            row = json.loads(message.value())
            found.setdefault(row["k"], []).append(row["n"])
        return found


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[KafkaArena]:
    with start_broker() as broker:
        arena = KafkaArena(tmp_path, "kafka_victim.py", "m", cluster=Cluster(broker))
        yield arena
        arena.stop()


def wanted(rows: int) -> dict[str, list[int]]:
    return {f"{p}-{k}": list(range(k, rows // 2, 11)) for p in range(2) for k in range(11)}


def duplicates_and_losses(seen: dict[str, list[int]], rows: int) -> tuple[int, int]:
    have = Counter((key, n) for key, numbers in seen.items() for n in numbers)
    want = {(key, n) for key, numbers in wanted(rows).items() for n in numbers}
    return sum(count - 1 for count in have.values()), len(want - set(have))


def test_every_row_is_there_once_and_in_order(arena: KafkaArena) -> None:
    chance = random.Random(SEED)
    arena.fill(rows=2000, per_epoch=100)
    deaths = [*WORKERS, *WORKERS[2:], *DRIVERS, "broker"]
    chance.shuffle(deaths)
    for death in deaths:
        arena.progress(chance.randrange(2))
        if death != "broker":
            arena.order(death)
            continue
        arena.order("worker-opened")
        arena.cluster.broker.kill()
        time.sleep(chance.random() * 3)
        arena.cluster.broker.start()
    arena.end()
    print(f"seed {SEED}: {len(deaths) + 1} kills, {arena.starts} starts of the driver, {duplicates_and_losses(arena.seen(), 2000)}")
    assert arena.seen() == wanted(2000)


def test_without_markers_rows_come_twice(arena: KafkaArena) -> None:
    arena.variant = "no_marker"
    arena.fill(rows=200, per_epoch=100)
    arena.order("worker-committed")
    arena.order("worker-committed")
    arena.end()
    twice, lost = duplicates_and_losses(arena.seen(), 200)
    print(f"without markers: {twice} twice, {lost} lost")
    assert twice > 0 and lost == 0


def test_with_lanes_by_chance_rows_are_lost(arena: KafkaArena) -> None:
    arena.variant = "random_lanes"
    arena.fill(rows=200, per_epoch=100)
    arena.order("driver-committed")
    arena.end()
    twice, lost = duplicates_and_losses(arena.seen(), 200)
    print(f"with lanes by chance: {twice} twice, {lost} lost")
    assert lost > 0
