"""A pipeline that dies between removing keys from a dynamic table and putting others: the epoch is repeated, and the table is whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import await_end

from millstream import committed_files
from millstream.engine.epoch.loop import EpochLoop
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
PIPELINE = """
name: p
sources:
  people:
    {type: file, path: in, format: json, schema: {id: string, tier: string, _op: string}, mode: {type: bounded}, max_files_per_epoch: 1}
transforms:
  tiers: {type: dynamic_table, backend: sqlite, path: tiers.db, key: id, columns: {tier: string}, sql: "SELECT id, tier FROM people"}
  seen: {type: sql, sql: "SELECT p.id, t.tier AS now FROM people p LEFT JOIN tiers t ON p.id = t.id"}
sinks:
  out: {type: file, from: seen, path: out, format: json}
"""
EPOCHS = [[("a", "x", "i"), ("b", "x", "i")], [("a", "", "d"), ("b", "y", "u"), ("c", "x", "i")], [("d", "z", "i")]]
DYING = """
import os, signal, sys
from millstream.lookups.backends.sqlite import Table
delete = Table.delete
def deleted(self, keys):
    delete(self, keys)
    os.kill(os.getpid(), signal.SIGKILL)
Table.delete = deleted
sys.argv = ["millstream", "run", "p.yaml"]
from millstream.cli import main
main()
"""


def test_a_fill_that_was_cut_short_is_repeated(tmp_path: Path, run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    killed, control = tmp_path / "killed", tmp_path / "control"
    (killed / "in").mkdir(parents=True)
    (killed / "p.yaml").write_text(PIPELINE)
    for number, rows in enumerate(EPOCHS):
        lines = [json.dumps(dict(zip(("id", "tier", "_op"), row, strict=True))) for row in rows]
        file = killed / f"in/{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # read in this order
    assert subprocess.run([sys.executable, "-c", DYING], cwd=killed, check=False).returncode == -signal.SIGKILL
    await_end(killed)
    assert table(killed) == {"b": "x"}
    shutil.copytree(killed, control)

    monkeypatch.chdir(killed)
    run(load_pipeline(killed / "p.yaml"))
    assert table(killed) == {"b": "y", "c": "x", "d": "z"}
    written = [json.loads(line) for file in committed_files("out") for line in Path(file).read_text().splitlines()]
    assert sorted((row["id"], row.get("now")) for row in written if row["_op"] != "d") == [
        ("a", "x"),
        ("b", "x"),
        ("b", "y"),
        ("c", "x"),
        ("d", "z"),
    ]

    monkeypatch.chdir(control)
    monkeypatch.setattr(EpochLoop, "_fill_tables", lambda *arguments: None)
    run(load_pipeline(control / "p.yaml"))
    assert table(control) == {"b": "x"}


def table(folder: Path) -> dict[str, str]:
    with sqlite3.connect(folder / "tiers.db") as connection:
        return dict(connection.execute("SELECT id, tier FROM tiers").fetchall())
