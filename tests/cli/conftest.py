"""Commands as a user runs them, and the checkpoint of a pipeline with state that ran for three epochs and stopped."""

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = textwrap.dedent("""
    name: kept
    sources:
      rows: {type: file, path: in, format: json, schema: {k: string, x: int64}, max_files_per_epoch: 1, mode: {type: continuous}}
    transforms:
      totals: {type: aggregate, from: rows, key_by: k, aggregate: {n: count(*), total: sum(x)}}
    sinks:
      out: {type: blackhole, from: totals}
    settings: {trigger: {type: available_now}}
    """)


@pytest.fixture
def millstream(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def go(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "millstream.cli", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return go


@pytest.fixture(scope="session")
def _ran(tmp_path_factory: pytest.TempPathFactory, spark: "SparkSession") -> Path:
    from dataclasses import replace

    from millstream.engine.engine import SparkEngine
    from millstream.plan.run_options import RunOptions
    from millstream.spec.files import load_pipeline

    folder = tmp_path_factory.mktemp("kept")
    (folder / "kept.yaml").write_text(KEPT)
    (folder / "in").mkdir()
    for number, rows in enumerate([[("a", 1), ("b", 2)], [("a", 5)], [("c", 7)]]):
        (folder / f"in/{number}.json").write_text("\n".join(json.dumps({"k": k, "x": x}) for k, x in rows))
    topology = load_pipeline(folder / "kept.yaml")
    source = topology.node("rows").component.model_copy(update={"path": str(folder / "in")})
    nodes = tuple(replace(node, component=source) if node.name == "rows" else node for node in topology.nodes)
    settings = topology.settings.model_copy(update={"checkpoint": str(folder / ".millstream/kept")})
    SparkEngine(spark).run(replace(topology, nodes=nodes, settings=settings), RunOptions())
    return folder


@pytest.fixture
def kept_text() -> str:
    return KEPT


@pytest.fixture
def kept(_ran: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may damage: the folder of `kept.yaml`."""
    shutil.copytree(_ran, tmp_path, dirs_exist_ok=True)
    return tmp_path
