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
  u: {type: memory, rows: [{k: a, at: "2024-01-01T00:00:00Z"}], schema: {k: string, at: timestamp}, event_time: {column: at, watermark: 0s}}
transforms:
  for_ever: {type: sql, sql: "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 1"}
  recent: {type: sql, ttl: 30d, sql: "SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t"}
  single: {type: sql, sql: "SELECT count(*) AS n FROM t HAVING count(*) > 1"}
  windows:
    type: sql
    late: drop
    sql: |
      WITH x AS (SELECT window.start AS a, k, count(*) AS n FROM u GROUP BY window(at, '1 minute'), k),
      y AS (SELECT window.start AS a, k, count(*) AS n FROM u GROUP BY window(at, '2 minutes'), k)
      SELECT x.a, sum(x.n * y.n) AS s FROM x JOIN y ON x.a = y.a AND x.k = y.k GROUP BY x.a
sinks:
  a: {type: print, from: for_ever}
  b: {type: print, from: recent}
  c: {type: print, from: single}
  d: {type: print, from: windows}
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
    assert "bounded: it keeps rows of the last 2m before the watermark" in text
    assert [each["bounded_by"] for each in queries["windows"] if each["keeps"]] == ["the last 2m before the watermark"] * 2
