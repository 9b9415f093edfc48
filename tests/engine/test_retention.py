"""Old epochs leave the checkpoint: offsets, commits, and versions of state once a snapshot holds what they said."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.verification import damages
from millstream.clients.storage import LocalStorage

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: json, schema: {k: string}, max_files_per_epoch: 1, mode: {type: continuous}}
transforms:
  totals: {type: aggregate, from: rows, key_by: k, aggregate: {n: count(*)}}
sinks:
  out: {type: blackhole, from: totals}
settings:
  trigger: {type: available_now}
  retain_epochs: 3
  state_partitions: 1
  spark: {spark.sql.streaming.stateStore.maintenanceInterval: 200ms, spark.sql.streaming.stateStore.minDeltasForSnapshot: "3"}
"""


def write(folder: Path, count: int) -> None:
    (folder / "in").mkdir()
    for number in range(count):
        (folder / f"in/{number:02}.json").write_text(json.dumps({"k": f"k{number % 3}"}))


def verified(folder: Path) -> list[str]:
    return [finding.message for finding in damages(Checkpoint(LocalStorage(folder / ".millstream/p"), "p"))]


def test_state_is_kept_in_snapshots_and_old_versions_go(tmp_path: Path) -> None:
    write(tmp_path, 24)
    (tmp_path / "p.yaml").write_text(TEXT)
    done = subprocess.run(
        [sys.executable, "-m", "millstream.cli", "run", "p.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    query = tmp_path / ".millstream/p/queries/totals"
    assert sorted(int(entry.name) for entry in (query / "offsets").iterdir()) == [20, 21, 22, 23]
    state = query / "state/0/0"
    assert list(state.glob("*.zip"))
    assert not (state / "1.changelog").exists()
    assert not list(query.rglob(".*.crc"))
    assert verified(tmp_path) == []
    for table in (state / "SSTs").iterdir():
        table.unlink()
    assert ["its table `SSTs/" in message for message in verified(tmp_path)] == [True]


def test_by_default_a_hundred_epochs_stay_and_the_session_is_left_as_it_was(
    pipeline: Callable, run: Callable, tmp_path: Path, spark: object
) -> None:
    write(tmp_path, 6)
    run(pipeline(TEXT.replace("  retain_epochs: 3\n", "")))
    assert len(list((tmp_path / ".millstream/p/queries/totals/offsets").iterdir())) == 6
    assert spark.conf.get("spark.sql.streaming.minBatchesToRetain") == "100"


def test_a_session_at_hand_retains_as_many_as_the_pipeline_says(pipeline: Callable, run: Callable, tmp_path: Path, spark: object) -> None:
    write(tmp_path, 8)
    run(pipeline(TEXT))
    assert len(list((tmp_path / ".millstream/p/queries/totals/offsets").iterdir())) == 4
    assert spark.conf.get("spark.sql.streaming.minBatchesToRetain") == "100"
