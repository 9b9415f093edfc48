"""An epoch whose changes are written is not computed again, and Spark's own state of windows still moves with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files
from millstream.connectors.file.sink import FileSinkRun
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.cutting import QueryPlan
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPELINE = """
    sources:
      t:
        {type: file, path: in, format: json, schema: {k: string, at: timestamp}, mode: {type: bounded}, max_files_per_epoch: 1,
         event_time: {column: at, watermark: 0s}}
    transforms:
      q:
        type: sql
        late: drop
        sql: SELECT k, max(n) AS most FROM (SELECT k, window, count(*) AS n FROM t GROUP BY k, window(at, '1 minute')) GROUP BY k
    sinks: {out: {type: file, from: q, path: out, format: json}}
"""
FAILING = 2


@pytest.fixture
def broken(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topology:
    """A pipeline whose run ended after an epoch was written, and before its sink committed it."""
    (tmp_path / "in").mkdir()
    for minute in range(5):
        rows = [{"k": k, "at": f"2024-01-01T00:0{minute}:{second:02}Z"} for k in "ab" for second in range(minute + (k == "a"))]
        path = tmp_path / f"in/{minute}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows) or "\n")
        os.utime(path, (1_700_000_000 + minute, 1_700_000_000 + minute))
    commit = FileSinkRun.commit

    def failing(self: FileSinkRun, staged: object, epoch: object) -> None:
        if epoch.number == FAILING:  # type: ignore[attr-defined]  # of the protocol
            raise RuntimeError("the target is gone")
        commit(self, staged, epoch)  # type: ignore[arg-type]

    topology = pipeline(PIPELINE)
    with monkeypatch.context() as patched:
        patched.setattr(FileSinkRun, "commit", failing)
        with pytest.raises(MillstreamError):
            run(topology)
    return topology


def result(folder: Path) -> dict[str, int]:
    files = committed_files(str(folder / "out"))
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    return {row["k"]: row["most"] for row in rows}


def test_a_written_epoch_moves_sparks_state_too(broken: Topology, run: Callable[..., Report], tmp_path: Path) -> None:
    run(broken)
    assert result(tmp_path) == {"a": 5, "b": 4}


def test_without_that_the_run_stops(broken: Topology, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueryPlan, "has_native_state", False)
    with pytest.raises(MillstreamError):
        run(broken)
