"""Without a terminal, a run writes one line per event, as text or JSON; epochs are added up."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.warm import Done

from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.cli.live import ago
from millstream.errors import Diagnostic
from millstream.observe.facts import EpochFacts, Restart, Snapshot
from millstream.observe.recorder import Recorder
from millstream.observe.report import Report

Captured = pytest.CaptureFixture[str]


def recorder() -> Recorder:
    found = Recorder("p")
    found.state("running")
    found.query_state("q", "running")
    return found


def make_log(pause: float = 0.0, format: LogFormat = LogFormat.json, level: LogLevel = LogLevel.info) -> EventLog:
    return EventLog("p", format, level, pause)


def events(captured: Captured) -> list[dict[str, object]]:
    return [json.loads(line) for line in captured.readouterr().err.splitlines()]


def test_a_run_has_events_from_start_to_end(capsys: Captured) -> None:
    facts = recorder()
    with make_log() as log:
        log.update(facts.snapshot())
        facts.epoch(EpochFacts("q", 0, 0.1, {"out": 3}, {"t": 1}, committed=("out",)))
        facts.read("q", {"o": 4})
        facts.restart(Restart("q", "gone", 1, 2.0, "MS093"))
        log.update(facts.snapshot())
        log.update(facts.snapshot())
    facts.state("stopped")
    log.end(Report(facts.snapshot(), "ck"))
    found = events(capsys)
    assert [each["event"] for each in found] == ["starting", "started", "restart", "rejected", "epochs", "stopped"]
    assert [each["level"] for each in found] == ["info", "info", "warning", "warning", "info", "info"]
    assert {"query": "q", "code": "MS093", "attempt": 1, "in_seconds": 2.0, "message": "gone"}.items() <= found[2].items()
    assert found[3]["nodes"] == {"t": 1}
    assert (found[4]["read"], found[4]["written"], found[4]["new"]) == ({"o": 4}, {"out": 3}, 1)


def test_a_long_start_is_shown(capsys: Captured) -> None:
    facts = Recorder("p")
    with make_log() as log:
        log.update(facts.snapshot())
        facts.query_state("a", "running")
        facts.query_state("b", "starting")
        log.update(facts.snapshot())
    found = events(capsys)
    assert [(each["event"], each.get("ready")) for each in found] == [("starting", None), ("starting", None), ("starting", ["a"])]


def test_mistakes_in_the_file_are_lines_too(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("sources: {a: {type: memory, rows: [{id: 1}]}}\nsinks: {b: {type: prnt, from: a}}\n")
    command = [str(Path(sys.executable).with_name("millstream")), "run", "p.yaml", "--log-format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    event = json.loads(line)
    assert (done.returncode, event["level"], event["event"], event["code"], event["line"]) == (78, "error", "failed", "MS010", 2)


def test_late_rows_are_a_warning(capsys: Captured) -> None:
    facts = recorder()
    with make_log() as log:
        facts.epoch(EpochFacts("q", 0, 0.1, {}, {}, late={"w": 2}))
        log.update(facts.snapshot())
        log.update(facts.snapshot())
    late = [each for each in events(capsys) if each["event"] == "late"]
    assert [(each["level"], each["nodes"]) for each in late] == [("warning", {"w": 2})]


def test_a_reader_that_exits_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with make_log() as log:
        log.update(recorder().snapshot())
        log.add_note("still here")


def test_epochs_are_added_up_and_not_written_one_by_one(capsys: Captured) -> None:
    facts, log = recorder(), make_log(pause=3600)
    for number in range(100):
        facts.epoch(EpochFacts("q", number, 0.1, {"out": 1}, {}))
        log.update(facts.snapshot())
    assert [each["event"] for each in events(capsys)] == ["started"]


def test_events_below_the_level_are_left_out(capsys: Captured) -> None:
    log = make_log(level=LogLevel.error)
    log.update(replace(recorder().snapshot(), notes=("restart 1",)))
    log.add_diagnostics([Diagnostic("MS060", "nothing to read")])
    (only,) = events(capsys)
    assert (only["event"], only["code"], only["message"]) == ("failed", "MS060", "nothing to read")


def test_text_has_the_same_on_one_line(capsys: Captured) -> None:
    log = make_log(format=LogFormat.text)
    log.end(Report(Snapshot("p", "done", 2.0), "ck"))
    line = capsys.readouterr().err
    assert line.endswith("INFO    p done epochs=0 seconds=2.0\n")


@pytest.mark.parametrize(("seconds", "text"), [(3.2, "3 s ago"), (600, "10 min ago"), (9000, "2 h ago"), (27_440_686, "318 days ago")])
def test_times_have_readable_units(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.mark.spark
def test_stdout_has_only_the_report_and_every_line_of_stderr_is_json(tmp_path: Path, warm: Callable[..., Done]) -> None:
    (tmp_path / "p.yaml").write_text("sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {s: {type: print, from: o}}\n")
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--format", "json", "--log-format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["nodes"]["s"]["rows_in"] == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"id": 1} in lines
    assert [line["event"] for line in lines if "event" in line][-1] == "done"
    quiet = warm("run", "p.yaml", "--again", "-q")
    assert (quiet.stdout, quiet.stderr) == ('{"id":1}\n', "")
