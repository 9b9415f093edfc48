"""`millstream state show`: the state of a stopped pipeline."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
Command = Callable[..., subprocess.CompletedProcess[str]]


def test_a_pipe_gets_json_lines(kept: Path, warm: Command) -> None:
    done = warm("state", "show", "kept.yaml", "totals", "--limit", "2")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"key": {"k": "a"}, "value": {"count": 2, "sum": 6}},
        {"key": {"k": "b"}, "value": {"count": 1, "sum": 2}},
    ]
    assert "2 rows, and more" in done.stderr


def test_one_key_is_found(kept: Path, warm: Command) -> None:
    done = warm("state", "show", "kept.yaml", "totals", "--key", "c")
    assert [json.loads(line)["value"]["sum"] for line in done.stdout.splitlines()] == [7]


@pytest.mark.parametrize(("node", "says"), [("totlas", "did you mean `totals`?"), ("rows", "`rows` keeps no state")])
def test_other_nodes_are_answered_before_spark_starts(kept: Path, millstream: Command, node: str, says: str) -> None:
    done = millstream("state", "show", "kept.yaml", node)
    assert done.returncode == 2
    assert says in done.stderr
    assert "with Spark" not in done.stderr


def test_a_pipeline_that_has_not_run_says_so(tmp_path: Path, kept: Path, millstream: Command) -> None:
    (tmp_path / "fresh.yaml").write_text((kept / "kept.yaml").read_text().replace("name: kept", "name: fresh"))
    done = millstream("state", "show", "fresh.yaml", "totals")
    assert done.returncode == 2
    assert "pipeline `fresh` has not run yet" in done.stderr
