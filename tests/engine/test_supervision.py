"""Temporary failures are tried again, with growing pauses and a limit; permanent ones stop the pipeline, and the other queries with it."""

import time
from collections.abc import Callable
from typing import ClassVar

import pytest

from millstream import MemorySink, MemorySource
from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.plan.components import Epoch, NodeContext, Sink, SinkRun, Staged
from millstream.plan.nodes import make_node
from millstream.plan.settings import Settings
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
tries: list[int] = []


class Flaky(Sink):
    """Fails the first `failures` times."""

    type: ClassVar[str] = "flaky"
    failures: int = 0
    temporary: bool = True

    def open(self, context: NodeContext) -> SinkRun[None]:
        return FlakyRun(self, context)


class FlakyRun(SinkRun[None]):
    def __init__(self, sink: Flaky, context: NodeContext) -> None:
        super().__init__(context)
        self.sink = sink

    def stage(self, frame: object, epoch: Epoch) -> Staged[None]:
        tries.append(epoch.number)
        if len(tries) <= self.sink.failures:
            kind = TemporaryError if self.sink.temporary else RunError
            raise kind(Diagnostic("MS069" if self.sink.temporary else "MS079", "the other side is away"))
        return Staged(0, None)


@pytest.fixture
def flaky(tmp_path, run: Callable) -> Callable:
    tries.clear()

    def go(**options: object):
        settings = Settings.model_validate({"checkpoint": str(tmp_path / "ck"), "restart": {"limit": 3, "backoff": "50ms"}})
        rows = MemorySource(rows=({"id": 1},))
        return run(Topology("p", (make_node("rows", rows), make_node("out", Flaky(**options), ("rows",))), settings))

    return go


def test_a_temporary_failure_is_tried_again(flaky: Callable) -> None:
    report = flaky(failures=2)
    assert report.state == "done"
    assert len(tries) == 3
    assert len([note for note in report.notes if "restart" in note]) == 2


def test_the_limit_ends_the_trying(flaky: Callable) -> None:
    with pytest.raises(TemporaryError):
        flaky(failures=99)
    assert len(tries) == 4


def test_a_permanent_failure_is_not_tried_again(flaky: Callable) -> None:
    with pytest.raises(RunError):
        flaky(failures=99, temporary=False)
    assert len(tries) == 1


def test_one_failing_query_stops_the_others(tmp_path, run: Callable) -> None:
    tries.clear()
    from millstream import GeneratorSource

    endless = GeneratorSource.model_validate({"rows_per_epoch": 10, "fields": {"id": {"type": "sequence"}}})
    nodes = (
        make_node("rows", MemorySource(rows=({"id": 1},))),
        make_node("endless", endless),
        make_node("out", Flaky(failures=99, temporary=False), ("rows",)),
        make_node("other", MemorySink(), ("endless",)),
    )
    with pytest.raises(RunError, match="away"):
        run(Topology("p", nodes, Settings(checkpoint=str(tmp_path / "ck"))))


def test_a_slow_epoch_shows_as_lag(tmp_path, run: Callable) -> None:
    class Slow(Sink):
        """Takes its time."""

        type: ClassVar[str] = "slow"

        def open(self, context: NodeContext) -> SinkRun[None]:
            return SlowRun(context)

    class SlowRun(SinkRun[None]):
        def stage(self, frame: object, epoch: Epoch) -> Staged[None]:
            time.sleep(1.5)
            return Staged(0, None)

    seen: list[float] = []
    topology = Topology(
        "p", (make_node("rows", MemorySource(rows=({"id": 1},))), make_node("out", Slow(), ("rows",))), Settings(checkpoint=str(tmp_path))
    )
    report = run(topology, watch=lambda snapshot: seen.extend(query.lag_seconds for query in snapshot.queries.values()))
    assert max(seen) > 0.5
    assert report.queries["rows"].lag_seconds == 0
