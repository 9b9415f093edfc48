"""`plan` says what an epoch of an incremental query computes, what grows without bound, and what bounds it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

pytestmark = pytest.mark.spark
PIPELINE = """
name: p
sources:
  t: {type: memory, rows: [{k: a, v: 1}]}
transforms:
  for_ever: {type: sql, sql: "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 1"}
  recent: {type: sql, ttl: 30d, sql: "SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t"}
  single: {type: sql, sql: "SELECT count(*) AS n FROM t HAVING count(*) > 1"}
sinks:
  a: {type: print, from: for_ever}
  b: {type: print, from: recent}
  c: {type: print, from: single}
"""


def test_growth_is_shown(warm: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    text = warm("plan", "p.yaml").stdout
    assert "by k  computes touched groups  keeps one row per group (144 MB per million)" in text, text
    assert "grows without bound with t; `ttl` on for_ever bounds it" in text
    assert "bounded: it keeps rows of t of the last 30d" in text
    assert "computes touched partitions" in text and "computes changed rows  keeps one row\n" in text
    queries = {query["name"]: query["operators"] for query in json.loads(warm("plan", "p.yaml", "--format", "json").stdout)["queries"]}
    assert [(each["cost"], each["mb_per_million_rows"], each["bounded_by"]) for each in queries["for_ever"]] == [
        ("changed rows", [], None),
        ("touched groups", [144], None),
    ]
    assert [each["bounded_by"] for each in queries["recent"]] == ["t of the last 30d"] * 2
