"""`millstream run A B`: pipelines run at the same time in one Spark, independent of each other."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

Run = Callable[..., subprocess.CompletedProcess[str]]
GOOD = """
sources: {rows: {type: memory, rows: [{id: 1}, {id: 2}]}}
functions: {f: "NAME.py:f"}
transforms: {q: {type: sql, sql: SELECT f(id) AS x FROM rows}}
sinks: {out: {type: file, from: q, path: out/NAME, format: json}}
"""
FUNCTION = """
import millstream
import pyarrow.compute as pc

@millstream.function(returns="int64")
def f(ids):
    return pc.multiply(ids, FACTOR)
"""
BAD = """
sources: {rows: {type: memory, rows: [{id: 0}]}}
transforms: {q: {type: sql, sql: SELECT 1 / id AS x FROM rows}}
sinks: {out: {type: blackhole, from: q}}
"""
ENDLESS = """
sources: {rows: {type: generator, rows_per_second: 20, fields: {id: {type: sequence}}}}
sinks: {out: {type: blackhole, from: rows}}
"""
PLAIN = "sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {out: {type: blackhole, from: o}}\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.spark
def test_a_single_one_that_fails_prints_the_same_object(tmp_path: Path, warm: Callable[..., Done]) -> None:
    write(tmp_path, bad=BAD)
    done = warm("run", "bad.yaml", "--format", "json", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["pipeline"], report["state"], [error["code"] for error in report["errors"]]) == ("bad", "failed", ["MS067"])


@pytest.mark.spark
def test_one_that_fails_leaves_the_others_alone_and_functions_of_one_name_do_not_clash(millstream: Run, tmp_path: Path) -> None:
    for name, factor in (("a", 10), ("b", 100)):
        (tmp_path / f"{name}.py").write_text(FUNCTION.replace("FACTOR", str(factor)))
    write(tmp_path, a=GOOD.replace("NAME", "a"), b=GOOD.replace("NAME", "b"), bad=BAD)
    done = millstream("run", ".", "--format", "json", "--log-format", "json")
    assert done.returncode == 1, done.stderr
    reports = {report["pipeline"]: report for report in map(json.loads, done.stdout.splitlines())}
    assert {name: report["state"] for name, report in reports.items()} == {"a": "done", "b": "done", "bad": "failed"}
    assert [error["code"] for error in reports["bad"]["errors"]] == ["MS067"]
    rows = {name: [path.read_text() for path in sorted((tmp_path / "out" / name).glob("*.json"))] for name in "ab"}
    assert [sorted("".join(texts).split()) for texts in rows.values()] == [['{"x":10}', '{"x":20}'], ['{"x":100}', '{"x":200}']]
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert {(event["pipeline"], event["event"]) for event in events} >= {("a", "done"), ("b", "done"), ("bad", "failed")}
    assert [(tmp_path / ".millstream" / name / "_millstream").is_dir() for name in ("a", "b", "bad")] == [True] * 3
    assert sum((tmp_path / ".millstream" / name / "logs" / "jvm.log").exists() for name in ("a", "b", "bad")) == 1


@pytest.mark.spark
def test_ctrl_c_stops_all_of_them_after_their_epochs(tmp_path: Path) -> None:
    write(tmp_path, a=ENDLESS, b=ENDLESS)
    command = [
        sys.executable,
        "-m",
        "millstream.cli",
        "run",
        "a.yaml",
        "b.yaml",
        "--profile",
        "short",
        "--format",
        "json",
        "--log-format",
        "json",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        started: set[str] = set()
        while len(started) < 2:
            event = json.loads(process.stderr.readline())
            started |= {event["pipeline"]} if event["event"] == "started" else set()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert [json.loads(line)["state"] for line in out.splitlines()] == ["stopped", "stopped"]


def test_all_files_are_checked_before_anything_starts(millstream: Run, tmp_path: Path) -> None:
    write(tmp_path, a=PLAIN, b=PLAIN.replace("from: o", "from: oo"), c=PLAIN.replace("type: memory", "type: memry"))
    done = millstream("run", "a.yaml", "b.yaml", "c.yaml")
    assert done.returncode == 78
    assert "b.yaml:2" in done.stderr and "c.yaml:1" in done.stderr
    assert not (tmp_path / ".millstream").exists()


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("settings: {master: 'local[2]'}", "", "`master` is `local[2]` in `a` (pipeline) and `local[*]` in `b` (default)"),
        ("settings: {driver_memory: 2GB}", "settings: {driver_memory: 1GB}", "`driver_memory` is"),
        ("settings: {profile: small}", "", "`profile` is `small` in `a`"),
        ("settings: {spark: {spark.ui.enabled: 'true'}}", "", "`spark.ui.enabled` differs between `a` and `b`"),
        ("name: x", "name: x", "two pipelines are called `x`: in `a.yaml` and in `b.yaml`"),
        ("settings: {checkpoint: ck}", "settings: {checkpoint: ck}", "use the same checkpoint: `ck`"),
    ],
)
def test_what_one_spark_cannot_have_is_refused(millstream: Run, tmp_path: Path, one: str, other: str, words: str) -> None:
    write(tmp_path, a=PLAIN + one, b=PLAIN + other)
    done = millstream("run", "a.yaml", "b.yaml")
    assert done.returncode == 78
    assert "error[MS173]" in done.stderr and words in done.stderr, done.stderr


def test_two_modules_of_one_name_are_refused(millstream: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, **{name: GOOD.replace("NAME.py", "udfs").replace("NAME", name)})
        (tmp_path / name / "udfs.py").write_text(FUNCTION.replace("FACTOR", "1"))
    done = millstream("run", "a", "b")
    assert done.returncode == 78
    assert "both have a Python module `udfs`" in done.stderr


@pytest.mark.parametrize("flag", [("--checkpoint", "x"), ("--reset", "o")])
def test_options_of_one_pipeline_are_refused(millstream: Run, tmp_path: Path, flag: tuple[str, str]) -> None:
    write(tmp_path, a=PLAIN, b=PLAIN)
    done = millstream("run", "a.yaml", "b.yaml", *flag)
    assert done.returncode == 2
    assert f"`{flag[0]}` applies to one pipeline" in done.stderr


def test_a_folder_without_a_pipeline_is_refused(millstream: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "error[MS172]" in millstream("run", "empty").stderr
