"""Scripts on batches, without Spark: what a worker does is done here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.clients.storage import LocalStorage
from millstream.plan import types
from millstream.plan.components import NodeContext
from millstream.transforms.script import Script
from millstream.worker.scripts.engines import kept
from millstream.worker.scripts.runner import ScriptRunner

Row = dict[str, Any]


@pytest.fixture(params=["quickjs", "deno"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both engines: what holds for one holds for the other."""
    yield request.param
    for _, idle in kept("idle") or []:
        idle.close()
    (kept("idle") or []).clear()


@pytest.fixture
def runner(engine: str, tmp_path: Path) -> Callable[..., ScriptRunner]:
    """`runner(text, given)`: the runner of a script for batches with a schema."""

    def make(
        text: str, given: pa.Schema, *, isolate: bool = True, key: tuple[str, ...] = (), hidden: tuple[str, ...] = (), **options: Any
    ) -> Any:
        script = Script(script=text, **{"engine": engine, "language": "javascript", "timeout": "500ms", "memory": "64MB", **options})
        context = NodeContext("step", tmp_path, LocalStorage(tmp_path / "ck"), isolate=isolate, find_key=lambda: key, hidden=hidden)
        own = script._own(given, script._kept(given))
        return script.runner(given, own, context)

    return make


@pytest.fixture
def results(runner: Callable[..., ScriptRunner]) -> Callable[..., list[Row]]:
    """`results(text, rows, columns)`: the rows that come out, with `_reject` where rejects are isolated."""

    def go(text: str, rows: list[Row], columns: dict[str, str], **options: Any) -> list[Row]:
        batch = pa.RecordBatch.from_pylist(rows, types.schema(columns))
        return [row for result in runner(text, batch.schema, **options).run([batch]) for row in result.to_pylist()]

    return go


def split(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """The good rows, and the errors of the others."""
    good = [{name: value for name, value in row.items() if name != "_reject"} for row in rows if row["_reject"] is None]
    return good, [row["_reject"]["error"] for row in rows if row["_reject"] is not None]
