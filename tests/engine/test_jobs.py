"""A bounded pipeline is a job: it is done, says so, and is repeated only when asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

TEXT = """
    sources: {in: {type: file, path: in, format: json, mode: {type: bounded}, schema: {id: int64}}}
    sinks: {out: {type: file, from: in, path: out, format: json}}
"""


def test_a_job_is_done_once_and_again_when_asked(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    assert run(pipeline(TEXT)).nodes["out"].rows_in == 1
    (tmp_path / "in" / "b.json").write_text('{"id": 2}\n')
    told = run(pipeline(TEXT), flags=True)
    assert (told.state, told.epochs) == ("done", 0)
    assert "`--again` repeats it" in told.notes[0]
    report = run(pipeline(TEXT), again=True)
    assert report.nodes["out"].rows_in == 2
    assert "`out` will receive rows once more" in report.notes[0]
    assert len(list((tmp_path / "out").glob("*.json"))) >= 2


def test_a_job_that_is_not_done_goes_on(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    assert "nothing to repeat" in run(pipeline(TEXT), again=True).notes[0]
