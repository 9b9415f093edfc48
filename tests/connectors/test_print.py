"""Rows on the terminal: JSON lines in a pipe, a table for a person, and no harm when nobody reads."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.connectors.conftest import opened

from millstream.connectors.print.sink import PrintSink
from millstream.connectors.print.terminal import show
from millstream.plan.components import Staged

ROWS = "SELECT id, if(id = 1, NULL, 'n') AS name, TIMESTAMP '2026-01-01 00:00:00.000001' AS at, array(1) AS `a.b` FROM range(0, {0}, 1, 2)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.spark
def test_a_pipe_gets_every_row_as_json_with_nulls_and_microseconds(spark: Any, epoch: Callable, capsys: pytest.CaptureFixture) -> None:
    sink = opened(PrintSink())
    staged = sink.stage(spark.sql(ROWS.format(30)), epoch())
    assert (staged.rows, capsys.readouterr().out) == (30, "")
    sink.commit(staged, epoch())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == list(range(30))
    assert lines[1] == {"id": 1, "name": None, "at": "2026-01-01T00:00:00.000001Z", "a.b": [1]}


@pytest.mark.spark
def test_a_sample_is_shown_and_everything_is_counted(spark: Any, epoch: Callable) -> None:
    staged = opened(PrintSink(sample_every=10)).stage(spark.sql(ROWS.format(100)), epoch())
    assert (staged.rows, len(staged.work)) == (100, 10)


@pytest.mark.spark
def test_a_terminal_gets_no_more_than_its_limit(spark: Any, epoch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    sink = opened(PrintSink(limit=3))
    staged = sink.stage(spark.sql(ROWS.format(1000)), epoch())
    assert (staged.rows, len(staged.work)) == (1000, 6)
    sink.commit(staged, epoch(4, sink="screen"))
    assert "screen · epoch 4 · 1,000 rows, 3 shown" in screen.getvalue()
    assert "a.b" in screen.getvalue()
    assert "null" in screen.getvalue()


@pytest.mark.spark
def test_an_epoch_without_rows_prints_nothing(spark: Any, epoch: Callable, capsys: pytest.CaptureFixture) -> None:
    sink = opened(PrintSink())
    sink.commit(sink.stage(spark.sql(ROWS.format(0)), epoch()), epoch())
    assert capsys.readouterr().out == ""


def test_markup_in_values_is_shown_and_not_obeyed(epoch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    show(['{"[b]c": "[red]x[/red]"}'], 1, 20, epoch())
    assert "[red]x[/red]" in screen.getvalue()
    assert "[b]c" in screen.getvalue()


LEFT_ALONE = """
from millstream.connectors.print.sink import PrintSink
from millstream.plan.components import Epoch, NodeContext, Staged
import sys
sink = PrintSink().open(NodeContext("s", None, None))
for number in range(3):
    sink.commit(Staged(1, ("{}" + "x" * 100000,)), Epoch("q", "s", number, "d", "t"))
print("still running", file=sys.stderr)
"""


def test_a_reader_that_has_gone_does_not_stop_the_pipeline() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", LEFT_ALONE], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr.strip()) == (0, "still running")


def test_a_repeated_epoch_is_printed_again(epoch: Callable, capsys: pytest.CaptureFixture) -> None:
    assert PrintSink().promise == "at_least_once"
    for _ in range(2):
        opened(PrintSink()).commit(Staged(1, ("{}",)), epoch())
    assert capsys.readouterr().out == "{}\n{}\n"
