"""What an incremental query keeps, seen from outside: a run and the commands count it, rows are shown, damage is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

pytestmark = pytest.mark.spark
PIPELINE = """
name: p
sources: {t: {type: memory, rows: [{k: a, v: 1}, {k: b, v: 2}, {k: a, v: 3}], rows_per_epoch: 2}}
transforms: {q: {type: sql, sql: "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 1"}}
sinks: {out: {type: blackhole, from: q}}
"""


def test_state_is_shown_and_damage_is_found(warm: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    ran = warm("run", "p.yaml", "--format", "json")
    (sums,) = json.loads(ran.stdout)["nodes"]["q"]["state"]["operators"]
    assert (sums["kind"], sums["key"], sums["rows"], sums["changed"]) == ("sums", "k", 2, 2) and sums["bytes"] > 0
    (listed,) = json.loads(warm("checkpoint", "list", "p.yaml", "--offline", "--format", "json").stdout)["queries"][0]["operators"]
    assert (listed["kind"], listed["rows"]) == ("incremental sums", 2) and listed["bytes"] > 0
    shown = warm("state", "show", "p.yaml", "q")
    assert '"k":"a"' in shown.stdout.replace(" ", "") and '"k":"b"' in shown.stdout.replace(" ", ""), shown.stdout
    assert '"rows of sum(t.v)":2' in shown.stdout.replace(": ", ":"), shown.stdout
    assert '"k":"a"' in (one := warm("state", "show", "p.yaml", "q", "--key", "k=a").stdout.replace(" ", "")) and '"k":"b"' not in one
    assert warm("checkpoint", "verify", "p.yaml").returncode == 0
    (file,) = (tmp_path / ".millstream/p/_millstream/incremental/q/log").glob("1-*/rows.parquet")
    file.write_bytes(file.read_bytes()[:-5])
    damaged = warm("checkpoint", "verify", "p.yaml")
    assert damaged.returncode == 1 and "MS052" in damaged.stdout + damaged.stderr
    assert "incremental/q/log" in damaged.stdout + damaged.stderr
