"""Epochs of an incremental query that a target lacks are delivered again from what was written, as long as that is kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.incremental.keeper import applied

from millstream import read_committed
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
sources:
  t: {type: file, path: in, format: json, schema: {k: string, v: int64}, max_files_per_epoch: 1}
settings: {trigger: {type: available_now}}
transforms:
  q: {type: sql, sql: "SELECT a.k, sum(a.v) AS s FROM t a JOIN t b ON a.k = b.k AND a.v = b.v GROUP BY a.k HAVING count(*) > 1"}
sinks:
  one: {type: file, from: q, path: out/one, format: parquet}
  two: {type: file, from: q, path: out/two, format: parquet}
"""


def _go(load: Callable[..., Topology], run: Callable[..., Report], numbers: range, **options: object) -> Report:
    Path("in").mkdir(exist_ok=True)
    for number in numbers:
        path = Path(f"in/{number}.json")
        path.write_text("".join(json.dumps({"k": key, "v": number}) + "\n" for key in "ab"))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return run(load(TEXT), **options)


def _table(sink: str) -> set[tuple[object, ...]]:
    rows = [tuple(row.values()) for row in read_committed(f"out/{sink}").to_pylist()]
    return set(applied([rows], (0,)))


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_target_lacks_is_read_back(
    kept: bool, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _go(pipeline, run, range(2))
    shutil.copytree("out/one", "older")
    _go(pipeline, run, range(2, 4))
    shutil.rmtree("out/one")
    shutil.move("older", "out/one")
    if not kept:
        (tmp_path / ".millstream/p/_millstream/incremental/q/log/2.json").unlink()
        with pytest.raises(RunError, match=r"MS141.*query `q` wrote for them was replaced by a snapshot"):
            _go(pipeline, run, range(4, 5), redeliver=True)
        return
    _go(pipeline, run, range(4, 5), redeliver=True)
    assert _table("one") == _table("two") == {("a", 10), ("b", 10)}
