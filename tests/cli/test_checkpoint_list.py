"""`millstream checkpoint list`: queries, progress and state, for people and for machines."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
Command = Callable[..., subprocess.CompletedProcess[str]]


def test_it_counts_the_rows_of_state(kept: Path, warm: Command) -> None:
    done = warm("checkpoint", "list", "kept.yaml", "--format", "json")
    assert done.returncode == 0, done.stderr
    (query,) = json.loads(done.stdout)["queries"]
    assert (query["name"], query["planned"], query["committed"], query["finished"]) == ("totals", 2, 2, None)
    (operator,) = query["operators"]
    assert (operator["kind"], operator["rows"], operator["partitions"]) == ("totals", 3, 2)
    assert 0 < operator["bytes"] < query["bytes"]


@pytest.mark.parametrize("target", ["kept.yaml", ".millstream/kept"])
def test_a_pipe_gets_a_line_for_each_thing_and_offline_no_spark(kept: Path, millstream: Command, target: str) -> None:
    (kept / ".millstream/kept/queries/totals/commits/2").unlink()
    done = millstream("checkpoint", "list", target, "--offline")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["checkpoint", "query", "state"]
    assert lines[1][:4] == ["query", "totals", "2", "1"]
    assert lines[2][:5] == ["state", "totals", "0", "totals", "-"]
    assert done.stderr == ""


def test_a_missing_checkpoint_is_reported(tmp_path: Path, millstream: Command, kept: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = millstream("checkpoint", "list", "empty")
    assert done.returncode == 2
    assert "there is no checkpoint" in done.stderr
    assert millstream("checkpoint", "list", "nowhere.yaml").returncode == 78
    assert millstream("checkpoint", "lits", "kept.yaml").returncode == 2
