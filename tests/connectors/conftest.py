"""Components driven by hand: a place in a pipeline, and streams drained epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.clients.storage import LocalStorage
from millstream.plan.components import Epoch, NodeContext

Row = dict[str, Any]


@pytest.fixture
def context(tmp_path: Path) -> Callable[..., NodeContext]:
    def make(name: str = "node", **options: Any) -> NodeContext:
        return NodeContext(name, tmp_path, LocalStorage(tmp_path / "checkpoint" / name), **options)

    return make


def opened(component: Any, folder: Path = Path()) -> Any:
    """The run object of a component that needs nothing of its node."""
    return component.open(NodeContext("node", folder, LocalStorage(folder / "checkpoint" / "node")))


@pytest.fixture
def drain(tmp_path: Path) -> Callable[..., list[list[Row]]]:
    """What a stream gives until nothing is left: one list of rows per epoch. The same `run` goes on where it was."""

    def go(frame: Any, run: str = "run") -> list[list[Row]]:
        epochs: list[list[Row]] = []
        writer = frame.writeStream.foreachBatch(lambda batch, _: epochs.append([row.asDict(True) for row in batch.collect()]))
        query = writer.option("checkpointLocation", str(tmp_path / "queries" / run)).trigger(availableNow=True).start()
        query.awaitTermination()
        return epochs

    return go


@pytest.fixture
def rows(drain: Callable[..., list[list[Row]]]) -> Callable[..., list[Row]]:
    """All rows of all epochs."""
    return lambda frame, run="run": [row for epoch in drain(frame, run) for row in epoch]


@pytest.fixture
def epoch() -> Callable[..., Epoch]:
    def make(number: int = 0, digest: str = "d", sink: str = "out", query: str = "q1") -> Epoch:
        return Epoch(query, sink, number, digest, "2026-01-01 00:00:00")

    return make
