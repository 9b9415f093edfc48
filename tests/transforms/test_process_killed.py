"""Killed in the middle of an epoch, a process function goes on with the state of the epoch before: nothing is counted twice or lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import read_committed
from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
FUNCTIONS = """
from millstream import ProcessFunction, ValueState

class Totals(ProcessFunction):
    output = {"user": "string", "total": "int64"}
    state = {"total": ValueState("int64")}

    def process(self, key, rows, state, timers):
        for n in rows["n"].to_pylist():
            state["total"].set(state["total"].get(0) + n)
            yield {"user": key, "total": state["total"].get()}
"""
PIPELINE = """
sources:
  clicks: {type: file, path: in, format: json, schema: {user: string, n: int64}, mode: {type: bounded}, max_files_per_epoch: 1}
transforms:
  totals: {type: process, from: clicks, key_by: user, function: "functions.py:Totals", buckets: 2}
sinks:
  out: {type: file, from: totals, path: out, format: parquet}
"""
# dies when the rows of epoch 1 are staged and not committed
SABOTAGE = """
import os, signal, sys
from millstream.connectors.file.sink import FileSinkRun
commit = FileSinkRun.commit
def dying(self, work, epoch):
    if epoch.number == 1:
        os.killpg(os.getpgid(0), signal.SIGKILL)
    commit(self, work, epoch)
FileSinkRun.commit = dying
sys.argv = ["millstream", "run", "p.yaml"]
from millstream.cli import main
main()
"""


def start(folder: Path) -> int:
    running = subprocess.Popen(
        [sys.executable, "-c", SABOTAGE], cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return running.wait(120)


def test_an_epoch_that_was_cut_off_is_done_again_with_the_state_before_it(
    tmp_path: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "p.yaml").write_text(PIPELINE)
    for number in range(3):
        path = tmp_path / "in" / f"{number}.json"
        path.write_text("\n".join(json.dumps({"user": user, "n": 10**number}) for user in ("ann", "bob")))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    assert start(tmp_path) == -signal.SIGKILL
    monkeypatch.chdir(tmp_path)
    run(load_pipeline(tmp_path / "p.yaml"))
    rows = sorted((row["user"], row["total"]) for row in read_committed(str(tmp_path / "out")).to_pylist())
    assert rows == [(user, total) for user in ("ann", "bob") for total in (1, 11, 111)]
