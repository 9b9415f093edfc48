"""What `check` says of one query, without a JVM. `test_spark_agrees.py` asks Spark about those that are not accused."""

from __future__ import annotations

import pyarrow as pa

from millstream.errors import Diagnostic
from millstream.plan.schemas import propagate
from millstream.spec.loader import loads

_PIPELINE = """
sources:
  t:
    type: memory
    schema: {id: int64, g: string, v: int64, at: timestamp, d: date, b: bool, arr: "list<int64>", box: "struct<a: int64>"}
    event_time: {column: at, watermark: 1m}
  u: {type: memory, schema: {id: int64, g: string, w: int64}}
transforms:
  q:
    type: sql
    sql: |
      SQL
sinks: {out: {type: memory, from: q}}
"""


def check(sql: str, level: str = "error") -> list[Diagnostic]:
    """The errors, or the warnings, of a query over `t` and `u`. That nobody reads one of them does not matter here."""
    found = loads(_PIPELINE.replace("SQL", sql)).diagnostics
    return [finding for finding in found if finding.level == level and finding.node in {"q", ""}]


def tables() -> dict[str, pa.Schema]:
    """The schemas of `t` and `u`."""
    topology = loads(_PIPELINE.replace("SQL", "SELECT t.id FROM t CROSS JOIN u")).topology
    assert topology
    return {name: schema for name, schema in propagate(topology).items() if name in {"t", "u"} and schema is not None}


def marked(finding: Diagnostic) -> str:
    """The words under the caret."""
    assert finding.span
    return finding.span.text[finding.span.column - 1 : finding.span.end - 1]
