"""Runs whose SQL calls functions of the user's: below and above the root, after a change, after a crash."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import read_committed
from millstream.engine.epoch.frames import EpochFrames
from millstream.errors import RunError

pytestmark = pytest.mark.spark
CODE = """
import pyarrow.compute as pc
import millstream
from beside import FACTOR

@millstream.function(returns="int64")
def times(values):
    return pc.multiply(values, FACTOR)

@millstream.function(returns="int64")
def hundredfold(values):
    return pc.multiply(values, 100)
"""
TEXT = """
functions: {times: scaling:times}
sources:
  rows: {type: file, path: in, format: json, schema: {id: int64}, max_files_per_epoch: 1, mode: {type: continuous}}
transforms:
  step: {type: sql, sql: SELECT times(id) AS n FROM rows}
sinks:
  out: {type: memory, from: step}
settings: {trigger: {type: available_now}}
"""
ANOTHER = TEXT.replace("scaling:times", "scaling:hundredfold")


@pytest.fixture(autouse=True)
def code(tmp_path: Path) -> None:
    (tmp_path / "scaling.py").write_text(CODE)
    (tmp_path / "beside.py").write_text("FACTOR = 3\n")


def write(number: int) -> None:
    Path("in").mkdir(exist_ok=True)
    Path(f"in/{number}.json").write_text(f'{{"id": {number}}}\n')


def to_file(text: str) -> str:
    return text.replace("out: {type: memory", "out: {type: file, format: parquet, path: out")


def rows(topology: Any, sink: str = "out") -> list[int]:
    return sorted(row["n"] for row in topology.node(sink).component.rows())


def test_modules_beside_the_pipeline_travel_with_the_function(pipeline: Callable, run: Callable) -> None:
    write(1)
    topology = pipeline(TEXT)
    run(topology)
    assert rows(topology) == [3]


def test_functions_are_known_above_a_root_and_in_the_epochs_below(pipeline: Callable, run: Callable) -> None:
    write(1)
    both = "both: {type: sql, sql: SELECT times(id) AS id FROM rows UNION ALL SELECT id FROM rows}\n  step:"
    topology = pipeline(
        TEXT.replace("step:", both).replace("AS n FROM rows", "AS n FROM both").replace("out:", "again: {type: memory, from: step}\n  out:")
    )
    run(topology)
    assert rows(topology) == rows(topology, "again") == [3, 9]


def test_a_condition_can_call_them_too(pipeline: Callable, run: Callable) -> None:
    write(1)
    write(2)
    topology = pipeline(TEXT.replace("{type: sql, sql: SELECT times(id) AS n FROM rows}", FILTER))
    run(topology)
    assert [row["id"] for row in topology.node("out").component.rows()] == [2]


FILTER = "{type: filter, from: rows, where: times(id) > 3}"


def test_two_readers_do_not_call_the_function_twice(pipeline: Callable, run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    write(1)
    found = []
    original = EpochFrames._is_expensive
    monkeypatch.setattr(EpochFrames, "_is_expensive", lambda self, node: found.append((node.name, original(self, node))) or found[-1][1])
    run(pipeline(TEXT.replace("out:", "again: {type: memory, from: step}\n  out:")))
    assert ("step", True) in found


def test_a_changed_function_starts_at_the_next_epoch(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(TEXT))
    write(2)
    changed = pipeline(ANOTHER)
    run(changed)
    assert rows(changed) == [200]


def test_a_half_done_epoch_is_finished_with_the_function_it_was_begun_with(pipeline: Callable, run: Callable) -> None:
    write(1)
    run(pipeline(to_file(TEXT)))
    assert read_committed("out")["n"].to_pylist() == [3]
    Path(".millstream/p/queries/rows/commits/0").unlink()
    shutil.rmtree("out")
    write(2)
    run(pipeline(to_file(ANOTHER)))
    assert sorted(read_committed("out")["n"].to_pylist()) == [3, 200]


def test_a_function_that_is_gone_can_be_replaced_in_the_middle_of_an_epoch(pipeline: Callable, run: Callable) -> None:
    write(1)
    Path("scaling.py").rename("code.py")
    run(pipeline(to_file(TEXT).replace("scaling:times", "code.py:times")))
    Path(".millstream/p/queries/rows/commits/0").unlink()
    Path("code.py").rename("scaling2.py")
    shutil.rmtree("out")
    changed = pipeline(to_file(ANOTHER).replace("scaling:", "scaling2.py:"))
    for _ in range(2):
        with pytest.raises(RunError, match="MS016"):
            run(changed)
    run(changed, accept_change=True)
    assert read_committed("out")["n"].to_pylist() == [100]


def test_above_the_root_a_function_cannot_change_in_the_middle_of_an_epoch(pipeline: Callable, run: Callable) -> None:
    write(1)
    union = "SELECT times(id) AS n FROM rows UNION ALL SELECT id FROM more"
    more = "more: {type: memory, rows: [{id: 7}]}\ntransforms:"
    before, after = (text.replace("SELECT times(id) AS n FROM rows", union).replace("transforms:", f"  {more}") for text in (TEXT, ANOTHER))
    run(pipeline(before))
    Path(".millstream/p/queries/step/commits/0").unlink()
    with pytest.raises(RunError, match="function `times`, which `step` calls, cannot change while epoch 0 is half done"):
        run(pipeline(after))
    run(pipeline(before))
    write(2)
    changed = pipeline(after)
    run(changed)
    assert rows(changed) == [200]
