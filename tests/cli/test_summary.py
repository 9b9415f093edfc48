"""The summary of a run: a line for each node with counts, and for each branch of a route with counts."""

from __future__ import annotations

from millstream.cli.summary import summary
from millstream.observe.facts import EpochFacts
from millstream.observe.recorder import Recorder
from millstream.observe.report import Report
from millstream.spec.loader import loads

ROUTED = """
name: p
sources: {o: {type: memory, rows: [{id: 1}]}}
transforms:
  by_id: {type: route, from: o, routes: {small: id < 10, large: id > 100}}
  even: {type: filter, from: by_id.large, where: id % 2 = 0}
sinks:
  one: {type: memory, from: by_id.small}
  two: {type: memory, from: even}
"""


def lines(recorder: Recorder, text: str = ROUTED) -> list[str]:
    shown = summary(loads(text).require(), Report(recorder.snapshot(), "ck"))
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_rejects_are_counted_in_words() -> None:
    recorder = Recorder("p")
    recorder.read("o", {"o": 4})
    recorder.epoch(EpochFacts("o", 0, 0.1, {"one": 3}, {"o": 1}))
    assert "o read 4 rows, 1 rejected row" in lines(recorder)


def test_a_branch_whose_rows_are_not_counted_is_named() -> None:
    recorder = Recorder("p")
    recorder.epoch(EpochFacts("o", 0, 0.1, {"one": 2, "two": 1}, {}))
    recorder.add("by_id.small", "transform", rows_out=2)
    recorder.add("even", "transform", rows_out=1)
    shown = lines(recorder)
    assert {"by_id.small passed 2 rows", "by_id.large rows not counted", "even passed 1 row"} <= set(shown)
    assert not any(line.startswith("by_id.default") for line in shown)


def test_a_branch_is_not_named_when_no_branch_is_counted() -> None:
    assert not any(line.startswith("by_id") for line in lines(Recorder("p")))
