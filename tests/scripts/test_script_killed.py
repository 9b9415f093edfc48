"""A row that a script has refused stays refused: killed between two sinks, the epoch is finished with the verdicts that it had."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import await_end

from millstream.engine.lowering.nodes import Lowering
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  orders: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: bounded}}
transforms:
  judged:
    type: script
    from: orders
    on_error: {dead_letter: bad}
    script: |
      const refuses = false;
      function invoke(row) {
        if (refuses && row.id === 2n) throw new Error("refused");
        return row;
      }
sinks:
  out: {type: file, from: judged, path: out, format: json}
  bad: {type: file, path: bad, format: json}
settings: {profile: short}
"""
VICTIM = """
import os, signal, sys
from millstream.cli import main
from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.lowering.nodes import Lowering
from millstream.transforms.script import Script

commit, program = FileSinkRun.commit, Script._program
def dying(self, work, epoch):
    if epoch.sink == "out":  # dead letters are committed before
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self, work, epoch)
def other(self):  # this run judges otherwise, as one whose limits of time are met would
    return program(self.model_copy(update={"script": self.script.replace("false", "true")}))
FileSinkRun.commit, Script._program = dying, other
if sys.argv.pop() == "careless":
    Lowering.varies = lambda *_: False
sys.argv[1:] = ["run", "p.yaml"]
main()
"""


def ids(folder: Path) -> list[int]:
    """The ids of the rows in files, of dead letters too."""
    rows = [json.loads(line) for path in folder.glob("*.json") for line in path.read_text().splitlines()]
    return sorted(json.loads(row["raw"])["id"] if "raw" in row else row["id"] for row in rows)


def kill(folder: Path, variant: str) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text("".join(json.dumps({"id": number}) + "\n" for number in range(1, 4)))
    (folder / "p.yaml").write_text(PIPELINE)
    done = subprocess.run([sys.executable, "-c", VICTIM, variant], cwd=folder, capture_output=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    await_end(folder)
    assert (ids(folder / "bad"), ids(folder / "out")) == ([2], [])


def test_it_is_there_once(tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kill(tmp_path, "careful")
    monkeypatch.chdir(tmp_path)
    run(load_pipeline("p.yaml"))
    assert (ids(tmp_path / "bad"), ids(tmp_path / "out")) == ([2], [1, 3])


def test_if_verdicts_were_not_kept_it_would_be_there_twice(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(tmp_path, "careless")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Lowering, "varies", lambda *_: False)
    run(load_pipeline("p.yaml"))
    assert (ids(tmp_path / "bad"), ids(tmp_path / "out")) == ([2], [1, 2, 3])
