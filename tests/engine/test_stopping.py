"""Signals stop between epochs; what was written stays whole, and the next run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream import committed_files

pytestmark = pytest.mark.spark
PIPELINE = """
sources: {g: {type: generator, rows_per_epoch: 1000, fields: {id: {type: sequence}}}}
sinks: {out: {type: file, from: g, path: out, format: json}}
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_a_signal_stops_after_the_running_epoch(tmp_path: Path, number: int, code: int) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--profile", "short"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    commits = tmp_path / ".millstream/p/queries/g/commits"
    until = time.monotonic() + 300
    while not (commits / "3").exists() and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == code, said
    assert "stopped" in said
    assert "Traceback" not in said
    ids = [json.loads(line)["id"] for file in committed_files(str(tmp_path / "out")) for line in Path(file).read_text().splitlines()]
    assert sorted(ids) == list(range(len(ids)))
    assert len(ids) >= 3000
    assert len(ids) % 1000 == 0


def test_a_second_instance_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    first = subprocess.Popen(
        [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--profile", "short"], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 300
        while not (tmp_path / ".millstream/p/queries/g/commits/0").exists() and time.monotonic() < until:
            time.sleep(0.1)
        second = subprocess.run(
            [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--profile", "short"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 1
        assert f"process {first.pid} on host" in second.stderr
    finally:
        first.send_signal(signal.SIGTERM)
        first.wait(60)
