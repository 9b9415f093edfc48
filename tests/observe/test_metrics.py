"""A metric is one field with a label and a unit: the report, the live view, the summary and the event log show it without a change."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from millstream import Topology
from millstream.cli import events, live, summary
from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.connectors.memory.source import MemorySource
from millstream.observe import recorder as recorders
from millstream.observe import report
from millstream.observe.facts import NodeFacts
from millstream.observe.metrics import metric
from millstream.observe.recorder import Recorder
from millstream.observe.report import Report
from millstream.plan.nodes import make_node

TOPOLOGY = Topology("p", (make_node("rows", MemorySource(rows=({"id": 1},))),))


@dataclass(frozen=True, slots=True)
class MoreFacts(NodeFacts):
    doubled: int = metric(0, "twice", unit="double", column="when not zero", phrase="{}", total="doubled", warning=True)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    for module in (events, live, recorders, report, summary):
        monkeypatch.setattr(module, "NodeFacts", MoreFacts)
    made = Recorder("p")
    made.add("rows", "source", rows_out=5, doubled=2)
    return made


def test_a_new_metric_is_in_the_report_and_in_the_summary(recorder: Recorder) -> None:
    found = Report(recorder.snapshot(), "ck")
    assert found.as_dict()["nodes"] == {"rows": {"rows_in": None, "rows_out": 5, "rejected": 0, "late": 0, "doubled": 2}}
    assert "rows  read 5 rows, 2 doubles" in summary.summary(TOPOLOGY, found)


def test_a_new_metric_has_a_column_in_the_live_view(recorder: Recorder) -> None:
    screen = io.StringIO()
    Console(file=screen, width=120).print(live.Live(TOPOLOGY)._table(recorder.snapshot()))
    heading, row = screen.getvalue().splitlines()[1:3]
    assert heading.split() == ["node", "rows", "in", "rows", "out", "rejected", "twice", "rows/s"]
    assert row.split()[:5] == ["rows", "memory", "5", "0", "2"]


def test_a_new_metric_is_an_event_and_a_total(recorder: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    log = EventLog("p", LogFormat.text, LogLevel.info, pause=0)
    log.update(recorder.snapshot())
    log.end(Report(recorder.snapshot(), "ck"))
    shown = capsys.readouterr().err
    assert "WARNING p doubled nodes.rows=2" in shown
    assert "doubled.rows=2" in shown


def test_an_unknown_count_is_absent_and_not_zero() -> None:
    recorder = Recorder("p")
    recorder.set("rows", "source", waiting=0)
    assert Report(recorder.snapshot(), "ck").as_dict()["nodes"] == {
        "rows": {"rows_in": None, "rows_out": None, "rejected": 0, "late": 0, "waiting": 0}
    }
