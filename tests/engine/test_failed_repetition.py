"""A repetition that failed before it read anything is not taken up by a run that nobody asked to repeat."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import read_committed
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    sources: {rows: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: bounded}}}
    sinks: {out: {type: file, from: rows, path: out, format: parquet}}
"""


def test_it_must_be_asked_for_again(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline(TEXT)
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1}\n')
    run(topology)
    Path("in").rename("away")
    with pytest.raises(RunError, match="MS060"):
        run(topology, again=True)
    Path("away").rename("in")
    with pytest.raises(RunError, match="MS167"):
        run(topology)
    assert read_committed("out")["id"].to_pylist() == [1]
    run(topology, again=True)
    assert read_committed("out")["id"].to_pylist() == [1, 1]
    assert "nothing is left to do" in run(topology).notes[0]


def test_once_done_it_is_forgotten(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline(TEXT)
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1}\n')
    run(topology)
    run(topology, again=True)
    Path("in").rename("away")
    with pytest.raises(RunError, match="MS060"):
        run(topology, reset=("rows",))
    Path("away").rename("in")
    assert run(topology).nodes["out"].rows_in == 1
