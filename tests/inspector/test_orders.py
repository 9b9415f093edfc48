"""Orders to a pipeline that runs in Spark: pause, resume, savepoint, tap, top, stop. Nothing is lost or doubled by them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.inspector.started import Running, rows, running_pipeline, wait_for

from millstream.checkpoint.layout import Checkpoint
from millstream.engine.engine import SparkEngine
from millstream.errors import Diagnostic, RunError
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
PIPELINE = """
name: orders
sources:
  g: {type: generator, rows_per_second: 200, fields: {id: {type: sequence}, at: {type: timestamp, step: 1s}}}
transforms:
  small: {type: filter, from: g, where: id >= 0}
sinks:
  out: {type: file, from: small, path: out, format: parquet}
"""


@pytest.fixture
def running(pipeline: Callable[..., Topology], spark: Any, sockets: Path) -> Iterator[Running]:
    with running_pipeline(spark, pipeline(PIPELINE)) as found:
        yield found


def test_a_pipeline_is_seen_paused_copied_tapped_and_stopped(running: Running, warm: Callable[..., Any]) -> None:
    wait_for(100)
    (line,) = json.loads(warm("list", "--format", "json").stdout)
    assert (line["name"], line["status"]) == ("orders", "running")
    assert "small" in warm("top", "orders", "--once").stdout

    assert "is paused" in warm("pause", "orders").stderr
    time.sleep(1.5)
    before = len(rows())
    time.sleep(1.5)
    assert len(rows()) == before
    assert json.loads(warm("list", "--format", "json").stdout)[0]["status"] == "paused"

    assert "continues" in warm("resume", "orders").stderr
    wait_for(before + 100)

    copied = json.loads(warm("savepoint", "orders", "saved", "--format", "json").stdout)
    assert copied["files"] > 3

    shown = warm("tap", "orders", "out", "--limit", "3").stdout.splitlines()
    assert [set(json.loads(row)) for row in shown] == [{"id", "at"}] * 3

    assert "stops after" in warm("stop", "orders").stderr
    report = running.end()
    assert report.state == "stopped"
    found = rows()
    assert found == list(range(len(found)))


def test_a_run_continues_from_a_savepoint(running: Running, warm: Callable[..., Any], run: Callable[..., Report], tmp_path: Path) -> None:
    wait_for(100)
    warm("pause", "orders")
    assert "✓ copied" in warm("savepoint", "orders", "saved").stderr
    shutil.copytree("out", "at that time")
    assert "no damage" in warm("checkpoint", "verify", "saved").stderr
    warm("resume", "orders")
    wait_for(len(rows()) + 100)
    warm("stop", "orders")
    running.end()

    topology = load_pipeline(tmp_path / "p.yaml")
    older = replace(topology, settings=topology.settings.model_copy(update={"checkpoint": str(tmp_path / "saved")}))
    with pytest.raises(RunError, match="holds epoch"):  # the target is ahead of the savepoint
        run(older)
    shutil.rmtree("out")
    Path("at that time").rename("out")
    before = len(rows())
    options = RunOptions(watch=lambda snapshot: options.stop.set() if (snapshot.nodes["out"].rows_in or 0) > 50 else None)
    SparkEngine(running.spark).run(older, options)
    assert rows() == list(range(len(rows())))
    assert len(rows()) > before


def test_counts_are_the_same_while_somebody_watches(running: Running, warm: Callable[..., Any]) -> None:
    wait_for(100)
    warm("tap", "orders", "small", "--limit", "40")
    warm("stop", "orders")
    report = running.end()
    assert report.nodes["g"].rows_out == report.nodes["out"].rows_in == len(rows())


def test_mistakes_are_said(running: Running, warm: Callable[..., Any]) -> None:
    wait_for(1)
    assert "did you mean `orders`" in warm("stop", "ordres").stderr
    assert "did you mean `small`" in warm("tap", "orders", "smal").stderr
    Path("full").mkdir()
    Path("full/x").touch()
    assert "MS059" in warm("savepoint", "orders", "full").stderr


def test_a_paused_run_ends_when_it_fails(running: Running, warm: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for(1)
    warm("pause", "orders")

    def lost(_: Checkpoint) -> None:
        raise RunError(Diagnostic("MS157", "the lease is lost"))

    monkeypatch.setattr(Checkpoint, "require_lease", lost)
    running._thread.join(20)
    assert not running._thread.is_alive()
    assert isinstance(running.report[0], RunError)
