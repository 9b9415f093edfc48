"""Queries run in threads of their own, and still share one run object per node, and one table in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from millstream import BlackholeSink
from millstream.clients.storage import LocalStorage
from millstream.engine.lowering.runs import NodeRuns
from millstream.plan.components import NodeContext
from millstream.plan.nodes import AnyNode, SinkNode, make_node
from millstream.transforms.dynamic_table import DynamicTable, DynamicTableRun


def both(function: Callable[[], Any]) -> list[Any]:
    """What two threads get that call it at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return [each.result() for each in [pool.submit(function), pool.submit(function)]]


def test_a_run_object_is_opened_once(tmp_path: Path) -> None:
    node, runs = make_node("out", BlackholeSink(), ("rows",)), NodeRuns()
    assert isinstance(node, SinkNode)

    def slow_context(of: AnyNode) -> NodeContext:
        time.sleep(0.1)
        return NodeContext(of.name, tmp_path, LocalStorage(tmp_path))

    one, other = both(lambda: runs.sink(node, slow_context))
    assert one is other


def test_a_table_in_memory_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = DynamicTable(backend="memory", key="id").open(NodeContext("t", tmp_path, LocalStorage(tmp_path)))
    spec = DynamicTableRun._spec

    def slow_spec(self: DynamicTableRun) -> Any:
        time.sleep(0.1)
        return spec(self)

    monkeypatch.setattr(DynamicTableRun, "_spec", slow_spec)
    one, other = both(run.resolve)
    run.close()
    assert one is other
