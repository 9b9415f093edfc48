"""A query without a planned epoch is bound to no plan: it starts with the one that is there, and with nothing of the old one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.engine.offline.preview import view
from millstream.errors import MillstreamError, RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    sources: {o: {type: memory, rows: [{id: 1}], event_time: {column: at}, schema: {id: int64, at: timestamp}}}
    transforms: {w: {type: window, from: o, window: {type: tumbling, size: 1m}, aggregate: {n: "percentile(id)"}}}
    sinks: {out: {type: memory, from: w}}
"""
GOOD = TEXT.replace("percentile(id)", "sum(id)")
ROW = "{id: 5, at: '2026-01-01 00:00:00'}"


def test_a_plan_that_never_ran_is_no_obstacle(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    with pytest.raises(MillstreamError, match="MS066"):
        run(pipeline(TEXT))
    changed = pipeline(GOOD.replace("{id: 1}", ROW))
    (seen,) = view(changed, analyse=False).queries
    assert (seen.committed, seen.changes) == (-1, ())
    run(changed)
    assert [row["n"] for row in changed.node("out").component.rows()] == [5], "with the new rows, not with a copy of the old ones"


def test_where_the_input_ends_is_decided_by_the_start_that_reads_it(
    pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    text = """
        sources: {o: {type: file, path: in, format: json, schema: {id: int64, user: string}, mode: {type: bounded}}}
        transforms: {t: {type: sql, sql: "SELECT id, from_json(user, 'no schema') AS x FROM o"}}
        sinks: {out: {type: memory, from: t}}
    """
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1}')
    with pytest.raises(MillstreamError, match="MS066"):
        run(pipeline(text))
    (tmp_path / "in/b.json").write_text('{"id": 2}')
    good = pipeline(text.replace("from_json(user, 'no schema')", "user"))
    run(good)
    assert sorted(row["id"] for row in good.node("out").component.rows()) == [1, 2]


def test_once_an_epoch_is_planned_the_plan_stays(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    run(pipeline(GOOD.replace("{id: 1}", ROW)))
    with pytest.raises(RunError, match="MS147"):
        run(pipeline(GOOD.replace("{id: 1}", ROW).replace("sum(id)", "max(id)")))
