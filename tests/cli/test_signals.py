"""What is said when a run is stopped by a signal."""

from __future__ import annotations

import signal

import pytest

from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.cli.signals import Signals


class Writing(EventLog):
    """A log that is interrupted while it writes."""

    def add_note(self, text: str) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")


def log(name: str) -> EventLog:
    return EventLog(name, LogFormat.text, LogLevel.info)


def test_only_pipelines_that_still_run_are_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[bool] = []
    over, other = log("over"), log("other")
    over.fail(())
    capsys.readouterr()
    Signals([over, other], lambda: asked.append(True))(signal.SIGTERM, None)
    said = capsys.readouterr().err
    assert asked == [True]
    assert "other note: stopping as soon as Spark has started" in said and "over" not in said


def test_a_signal_while_a_line_is_written_stops_the_run_all_the_same() -> None:
    asked: list[bool] = []
    received = Signals([Writing("p", LogFormat.text, LogLevel.info)], lambda: asked.append(True))
    received(signal.SIGINT, None)
    assert asked == [True] and received.number == signal.SIGINT
