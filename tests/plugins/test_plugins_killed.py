"""A plugin writes to SQLite, and the process is killed at every step of an epoch: nothing is lost, nothing is there twice. Without the
ledger of the plugin something is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.plugin_victim import STEPS
from tests.plugins.shelf import numbers_in
from tests.processes import await_end

from millstream.observe.report import Report
from millstream.plan.components.arrow_sink import ArrowSinkRun, LedgerSinkRun
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
PIPELINE = f"""
sources:
  numbers: {{type: file, path: in, format: json, schema: {{n: int64}}, mode: {{type: bounded}}, max_files_per_epoch: 1}}
sinks:
  out: {{type: shelf.sqlite, from: numbers, path: out.db}}
settings: {{plugins: {HERE / "shelf.py"}, profile: short}}
"""
EPOCHS = len(STEPS) + 1


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    for number in range(EPOCHS):
        path = tmp_path / f"in/{number}.json"
        path.write_text("".join(json.dumps({"n": 10 * number + n}) + "\n" for n in range(10)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return tmp_path


def kill(folder: Path, step: str, epoch: int, variant: str = "") -> None:
    command = [sys.executable, str(HERE / "plugin_victim.py"), step, str(epoch), *([variant] if variant else [])]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=400, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    await_end(folder)


EXPECTED = [10 * number + n for number in range(EPOCHS) for n in range(10)]


def test_nothing_is_lost_or_there_twice(project: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch, step in enumerate(STEPS):
        kill(project, step, epoch)
    monkeypatch.chdir(project)
    run(load_pipeline("p.yaml"))
    assert numbers_in(project / "out.db") == EXPECTED


def test_without_the_ledger_rows_are_there_twice(project: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kill(project, "committed", 0, "no_ledger")
    monkeypatch.chdir(project)
    monkeypatch.setattr(LedgerSinkRun, "ledger", lambda *_: None)
    monkeypatch.setattr(LedgerSinkRun, "commit", ArrowSinkRun.commit)
    monkeypatch.setattr("millstream.checkpoint.deliveries.Deliveries.find_lacks", lambda *_: [])
    run(load_pipeline("p.yaml"))
    assert numbers_in(project / "out.db") == sorted([*EXPECTED, *range(10)])
