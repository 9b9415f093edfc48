"""A run shows one line on a terminal and in a notebook, and nothing elsewhere."""

import sys
import threading
from types import SimpleNamespace

import pytest

from millstream.api.progress import ProgressLine, show_progress
from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot
from millstream.plan.run_options import RunOptions

SNAPSHOT = Snapshot(
    "p", "running", 3.0, {"o": NodeFacts("source", rows_out=1200), "out": NodeFacts("sink", rows_in=30)}, {"o": QueryFacts(epochs=5)}
)


def lines(text: str) -> list[str]:
    """What stood on the line, one after the other."""
    return [part for part in text.split("\r") if part.strip()]


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("p", RunOptions()) as options:
        assert options.watch is None
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_line_is_written_over_and_removed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_progress("p", RunOptions()) as options:
        assert options.watch is not None
        options.watch(SNAPSHOT)
    said = capsys.readouterr().err
    assert lines(said)[0].rstrip() == "p: starting"
    assert lines(said)[-1].rstrip() == "p: running, 3 s, epochs: 5, rows read: 1,200, rows written: 30"
    assert said.endswith(" \r") and "\n" not in said


def test_a_notebook_gets_the_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))  # type: ignore[arg-type]  # stands for it
    with show_progress("p", RunOptions()):
        assert "starting" in capsys.readouterr().err


def test_who_watches_himself_sees_no_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    given = RunOptions(watch=lambda snapshot: None)
    with show_progress("p", given) as options:
        assert options is given
    assert capsys.readouterr().err == ""


def test_notes_stay_above_the_line_and_a_stop_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    stop.set()
    ProgressLine(stop).update(Snapshot("p", "running", 3.0, notes=("a restart",)))
    said = capsys.readouterr().err
    assert "a restart\n" in said
    assert "stopping after the running epoch" in lines(said)[-1]
