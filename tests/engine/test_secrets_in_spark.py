"""With Spark's page, its REST interface and its event log on, none of them holds a secret, nor does anything that the run leaves behind."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
VALUE = "canary-7f3a-correct-horse"
PIPELINE = """
functions: {{shout: leak.py:shout}}
sources: {{rows: {{type: memory, rows: [{{id: 1, note: {note}}}, {{id: 2, note: fine}}]}}}}
transforms:
  step: {{type: python, from: rows, function: leak.py:leak, schema: {{id: int64, note: string}}, on_error: {{dead_letter: bad}}}}
  loud: {{type: sql, sql: "SELECT id, {call} AS note FROM step"}}
sinks:
  out: {{type: file, from: loud, path: out, format: json}}
  bad: {{type: file, path: bad, format: json}}
settings:
  spark:
    spark.hadoop.fs.azure.account.key.mine: "secret://env/TOKEN"
    spark.hadoop.fs.azure.account.kind.mine: "plain-for-all-to-see"
    spark.ui.enabled: "true"
    spark.ui.port: "{port}"
    spark.eventLog.enabled: "true"
    spark.eventLog.compress: "false"
    spark.eventLog.dir: "{events}"
"""
CODE = """
import json, os, urllib.request
import millstream

BASE = "http://127.0.0.1:{port}"

def get(path):
    with urllib.request.urlopen(BASE + path, timeout=20) as answer:
        return answer.read().decode()

def leak(batch):
    if 1 in batch["id"].to_pylist():
        application = json.loads(get("/api/v1/applications"))[0]["id"]
        rest = "/api/v1/applications/" + application
        pages = ["/environment/", "/SQL/", "/jobs/", rest + "/environment", rest + "/sql?details=true&planDescription=true"]
        with open({seen!r}, "a") as file:
            file.write("\\n".join(get(path) for path in pages))
        raise ValueError("cannot log in with " + "-".join(["canary", "7f3a", "correct", "horse"]))
    return batch

@millstream.function(returns="string")
def shout(values):
    raise ValueError("cannot log in with " + "-".join(["canary", "7f3a", "correct", "horse"]))
"""


def run(folder: Path, call: str) -> subprocess.CompletedProcess[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "events").mkdir()
    (folder / "p.yaml").write_text(PIPELINE.format(port=port, events=(folder / "events").as_uri(), note="plain", call=call))
    (folder / "leak.py").write_text(CODE.format(port=port, seen=str(folder / "seen.txt")))
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "TOKEN": VALUE})


def holding(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]


def test_a_dead_letter_is_masked_where_its_text_is_made(tmp_path: Path) -> None:
    done = run(tmp_path, "upper(note)")
    assert done.returncode == 0, done.stderr
    assert "cannot log in with ***" in "".join(path.read_text() for path in (tmp_path / "bad").glob("*.json"))
    places = [tmp_path / "seen.txt", *(path for path in (tmp_path / "events").rglob("*") if path.is_file())]
    assert all(b"plain-for-all-to-see" in path.read_bytes() for path in places if path.stat().st_size) and len(places) > 1
    assert holding(tmp_path) == []
    checkpoint = tmp_path / ".millstream/p"
    private = (checkpoint, *(checkpoint / name for name in ("_millstream", "queries", "logs")))
    assert [path.stat().st_mode & 0o077 for path in private] == [0] * 4


def test_the_words_of_a_function_that_fails_are_masked_before_spark_hears_them(tmp_path: Path) -> None:
    done = run(tmp_path, "shout(note)")
    assert done.returncode == 1
    assert "cannot log in with ***" in done.stderr
    assert holding(tmp_path) == [] and VALUE not in done.stderr + done.stdout
