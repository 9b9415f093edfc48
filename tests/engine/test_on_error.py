"""Bad rows go where `on_error` says: they fail the run, are dropped and counted, or become dead letters."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files

pytestmark = pytest.mark.spark
SOURCE = """
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64, x: string}, mode: {type: bounded}, on_error: POLICY}
sinks:
  out: {type: memory, from: rows}
  bad: {type: file, path: bad, format: json}
"""
STEPS = """
sources:
  rows: {type: memory, rows: [{id: 1, x: "10"}, {id: 2, x: "ten"}, {id: 3, x: "30"}]}
transforms:
  step: STEP
sinks:
  out: {type: memory, from: step}
  bad: {type: file, path: bad, format: json}
"""
SQL = "{type: sql, sql: 'SELECT id, CAST(x AS int) AS n FROM rows', on_error: POLICY}"
PYTHON = "{type: python, from: rows, function: steps.py:number, schema: {id: int64, n: int32}, on_error: POLICY}"
CODE = """
import pyarrow as pa
def number(batch):
    return pa.RecordBatch.from_pydict({"id": batch["id"], "n": pa.array([int(x) for x in batch["x"].to_pylist()], pa.int32())})
"""


def letters() -> list[dict[str, object]]:
    return [json.loads(line) for file in committed_files("bad") for line in Path(file).read_text().splitlines()]


def ids(topology: object) -> list[int]:
    return sorted(row["id"] for row in topology.node("out").component.rows())


def test_a_dead_letter_holds_the_row_the_node_the_epoch_the_error_and_the_time(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(SOURCE.replace("POLICY", "{dead_letter: bad}"))
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1, "x": "a"}\n{"id": "oops\n{"id": 3, "x": "c"}\n')
    report = run(topology)
    (letter,) = letters()
    assert (letter["node"], letter["epoch"], letter["raw"]) == ("rows", 0, '{"id": "oops')
    assert letter["error"]
    assert str(letter["time"]).startswith("20")
    assert ids(topology) == [1, 3]
    assert report.nodes["rows"].rejected == 1


def test_dropped_rows_are_counted(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(SOURCE.replace("POLICY", "drop").replace("  bad: {type: file, path: bad, format: json}\n", ""))
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1, "x": "a"}\n{"id": "oops\nnonsense\n')
    report = run(topology)
    assert ids(topology) == [1]
    assert report.nodes["rows"].rejected == 2


@pytest.mark.parametrize("step", [SQL, PYTHON], ids=["sql", "python"])
def test_transforms_tell_bad_rows_apart(pipeline: Callable, run: Callable, step: str) -> None:
    Path("steps.py").write_text(CODE)
    topology = pipeline(STEPS.replace("STEP", step.replace("POLICY", "{dead_letter: bad}")))
    run(topology)
    (letter,) = letters()
    assert letter["node"] == "step"
    assert json.loads(str(letter["raw"])) == {"id": 2, "x": "ten"}
    assert ids(topology) == [1, 3]


@pytest.mark.parametrize(("step", "code"), [(SQL, "MS067"), (PYTHON, "MS063")], ids=["sql", "python"])
def test_without_a_policy_they_fail_the_run(pipeline: Callable, run: Callable, step: str, code: str) -> None:
    Path("steps.py").write_text(CODE)
    topology = pipeline(STEPS.replace("STEP", step.replace("POLICY", "fail")).replace("  bad: {type: file, path: bad, format: json}\n", ""))
    with pytest.raises(Exception, match=code):
        run(topology)
    assert topology.node("out").component.rows() == []


def test_bad_rows_above_a_union_leave_it_too(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources:
          a: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: bounded}, on_error: {dead_letter: bad}}
          b: {type: memory, rows: [{id: 10}]}
        transforms: {both: {type: union, from: [a, b]}}
        sinks: {out: {type: memory, from: both}, bad: {type: file, path: bad, format: json}}
    """)
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1}\nnonsense\n')
    run(topology)
    assert ids(topology) == [1, 10]
    assert [letter["node"] for letter in letters()] == ["a"]


def test_bad_rows_above_a_union_pass_by_the_steps_below_it(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources:
          a: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: bounded}, on_error: {dead_letter: bad}}
          b: {type: memory, rows: [{id: 10}, {id: -1}]}
        transforms:
          both: {type: union, from: [a, b]}
          some: {type: filter, from: both, where: id > 0}
        sinks: {out: {type: memory, from: some}, bad: {type: file, path: bad, format: json}}
    """)
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1}\nnonsense\n')
    run(topology)
    assert ids(topology) == [1, 10]
    assert [letter["node"] for letter in letters()] == ["a"]
