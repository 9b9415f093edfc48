"""Transforms applied by hand to frames at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext, Transform

Row = dict[str, Any]


@pytest.fixture
def apply(spark: Any, tmp_path: Path) -> Callable[..., Any]:
    """The frame that a transform makes of some SQL rows: `apply(transform, orders="SELECT …")`."""

    def go(transform: Transform, *, isolate: bool = False, clock: str = "", node: str = "step", **inputs: str) -> Any:
        frames = {name: spark.sql(text) for name, text in inputs.items()}
        context = NodeContext(node, tmp_path, LocalStorage(tmp_path / "ck"), isolate=isolate, clock=clock)
        return transform.open(context).apply(frames, context)

    return go


@pytest.fixture
def result(apply: Callable[..., Any]) -> Callable[..., list[Row]]:
    return lambda transform, **options: [row.asDict(True) for row in apply(transform, **options).collect()]
