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
from tests.chaos.arena import KILLS, SEED, Arena, chosen
from tests.servers.kafka import Cluster

from millstream.dev.kafka import start_broker

pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.timeout(2400 + 60 * KILLS)]
WORKERS = ["worker-opened", "worker-producing", "worker-produced", "worker-committed"]
DRIVERS = ["driver-between", "driver-committed", "driver-produced"]
SMALL = ["small-opened", "small-producing", "small-produced", "small-committed"]
SAMPLE = ["worker-produced", "worker-committed", "driver-between", "driver-committed", "small-produced", "small-committed", "broker"]
PIPELINE = """
name: torture
connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
sources:
  m: {{type: kafka, topic: {read}, format: json, mode: {{type: bounded}}, schema: {{k: string, n: int64}}, max_rows_per_epoch: {rows}}}
sinks:
  out: {{type: kafka, from: m, topic: {written}, key: k, lanes: 4}}
settings: {{checkpoint: checkpoint, profile: short, restart: {{limit: {limit}, backoff: 200ms, max_backoff: 1s}}}}
"""


@dataclass
class KafkaArena(Arena):
    """A pipeline between two topics."""

    cluster: Cluster = None  # type: ignore[assignment]  # always given
    written: str = ""

    def fill(self, rows: int, per_epoch: int) -> None:
        read, self.written = self.cluster.topic(2), self.cluster.topic(4)
        for partition in range(2):
            keys = ({"k": f"{partition}-{n % 11}", "n": n} for n in range(rows // 2))
            self.cluster.send(read, keys, partition)
        names = {"read": read, "written": self.written, "address": self.cluster.address}
        self.write(PIPELINE.format(rows=per_epoch, limit=KILLS + 20, **names))

    def seen(self) -> dict[str, list[int]]:
        """Key → its numbers, in the order of the topic."""
        found: dict[str, list[int]] = {}
        for message in self.cluster.messages(self.written):
            row = json.loads(message.value())
            found.setdefault(row["k"], []).append(row["n"])
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A broker that may be killed."""
    with start_broker() as broker:
        yield Cluster(broker)


@pytest.fixture
def arena(tmp_path: Path, cluster: Cluster) -> Iterator[KafkaArena]:
    arena = KafkaArena(tmp_path, "kafka_victim.py", cluster=cluster)
    yield arena
    arena.stop()


def wanted(rows: int) -> dict[str, list[int]]:
    return {f"{p}-{k}": list(range(k, rows // 2, 11)) for p in range(2) for k in range(11)}


def duplicates_and_losses(seen: dict[str, list[int]], rows: int) -> tuple[int, int]:
    have = Counter((key, n) for key, numbers in seen.items() for n in numbers)
    want = {(key, n) for key, numbers in wanted(rows).items() for n in numbers}
    return sum(count - 1 for count in have.values()), len(want - set(have))


def test_every_row_is_there_once_and_in_order(arena: KafkaArena) -> None:
    """Each attempt of an epoch is made as a small or as a large one, by chance: both ways follow, and repeat, each other."""
    arena.variant = "either_way"
    chance = random.Random(SEED)
    deaths = chosen(chance, SAMPLE, [*WORKERS, *DRIVERS, *SMALL, "broker"])
    rows = 100 * (8 * len(deaths) + 4)
    arena.fill(rows, per_epoch=100)
    for death in deaths:
        arena.progress(chance.randrange(2))
        if death != "broker":
            arena.order(death)
            continue
        arena.order(chance.choice(["worker-opened", "small-opened"]))
        arena.cluster.broker.kill()
        time.sleep(chance.random() * 3)
        arena.cluster.broker.start()
    arena.end()
    print(f"seed {SEED}: {len(deaths)} kills, {arena.starts} starts of the driver, {duplicates_and_losses(arena.seen(), rows)}")
    assert arena.seen() == wanted(rows)


def test_without_markers_rows_come_twice(arena: KafkaArena) -> None:
    arena.variant = "no_marker large"
    arena.fill(rows=200, per_epoch=100)
    arena.order("worker-committed")
    arena.order("worker-committed")
    arena.end()
    twice, lost = duplicates_and_losses(arena.seen(), 200)
    print(f"without markers: {twice} twice, {lost} lost")
    assert twice > 0 and lost == 0


def test_with_lanes_by_chance_rows_are_lost(arena: KafkaArena) -> None:
    arena.variant = "random_lanes large"
    arena.fill(rows=200, per_epoch=100)
    arena.order("driver-committed")
    arena.end()
    twice, lost = duplicates_and_losses(arena.seen(), 200)
    print(f"with lanes by chance: {twice} twice, {lost} lost")
    assert lost > 0
