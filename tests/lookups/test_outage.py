"""A server that goes away in the middle of a run: the query starts again until it is back, and no row is lost."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from tests.lookups.live import PIPELINE, SQL, step
from tests.servers.redis import Server, start

pytestmark = [pytest.mark.spark, pytest.mark.server]


@dataclass
class Fragile:
    """A server that can be ended and started again on the same port."""

    server: Server
    process: subprocess.Popen[bytes]
    threads: list[threading.Timer] = field(default_factory=list)

    def fall(self) -> None:
        self.process.kill()
        self.process.wait(10)
        later = threading.Timer(2, self._rise)
        self.threads.append(later)
        later.start()

    def _rise(self) -> None:
        self.server, self.process = start(self.server.port)


@pytest.fixture
def fragile() -> Iterator[Fragile]:
    made = Fragile(*start())
    yield made
    for thread in made.threads:
        thread.join(20)
    made.process.kill()
    made.process.wait(10)


def test_the_query_waits_for_the_server(fragile: Fragile, pipeline: Callable, run: Callable) -> None:
    table = "{type: dynamic_table, backend: redis, table: t, key: user_id, columns: {tier: string}}"
    fragile.server.client().hset("t:7", "tier", "gold")
    topology = pipeline(PIPELINE.format(connections=f"{{redis: {{url: '{fragile.server.url}'}}}}", table=table, sql=SQL))
    got = step(topology, run, [{"id": number, "user_id": "7"} for number in range(3)], {1: fragile.fall})
    assert [(row["id"], row["tier"]) for row in got] == [(0, "gold"), (1, None), (2, None)], "its data was gone with it"
