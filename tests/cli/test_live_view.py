"""The live view: steady rates, readable durations, explained words, several pipelines on one screen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from millstream.cli.live import Live, Screen, ago
from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot, WatermarkFacts
from millstream.observe.rates import Rates
from millstream.plan.topology import Topology
from millstream.spec.loader import loads


def topology(name: str = "p") -> Topology:
    return loads(f"name: {name}\nsources: {{o: {{type: memory, rows: [{{id: 1}}]}}}}\nsinks: {{out: {{type: print, from: o}}}}").require()


def drawn(part: Any) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def snapshot(name: str = "p", **query: Any) -> Snapshot:
    facts = {"o": NodeFacts("source", rows_out=50, waiting=7)}
    return Snapshot(name, "running", 3.0, nodes=facts, queries={"o": QueryFacts(**query)})


def test_a_rate_is_not_zero_between_epochs() -> None:
    rates, seen = Rates(), []
    for tenth in range(300):
        now = tenth / 10
        rates.add({"o": int(now // 2) * 100}, now)  # an epoch of 100 rows every two seconds
        seen.append(rates.of("o", now))
    assert all(40 <= rate <= 60 for rate in seen[100:])


def test_long_epochs_have_a_rate_too() -> None:
    rates, seen = Rates(), []
    for second in range(300):
        rates.add({"o": second // 30 * 3000}, second)
        seen.append(rates.of("o", second))
    assert all(60 <= rate <= 110 for rate in seen[100:])


def test_an_idle_stream_has_no_rate() -> None:
    rates = Rates()
    for second in range(20):
        rates.add({"o": second * 10}, second)
    assert rates.of("o", 21) > 8
    assert rates.of("o", 40) == 0


@pytest.mark.parametrize(("seconds", "text"), [(27_440_686, "318 days"), (0.25, "0.2 s"), (75, "75 s"), (7200 * 2, "4 h")])
def test_behind_is_a_readable_duration_and_explained(seconds: float, text: str) -> None:
    shown = drawn(Live(topology())._table(snapshot(lag_seconds=seconds)))
    assert f"{text} behind" in shown
    assert "behind: how long the rows of the running epoch wait to be committed" in shown
    assert "rows/s: over 10 s" in shown
    assert "waiting: rows that the source has" in shown


def test_a_watermark_says_how_old_it_is() -> None:
    shown = drawn(Live(topology())._table(snapshot(watermark=WatermarkFacts(1_700_000_000_000, 27_440_686.0, "o"))))
    assert "(318 days ago)" in shown
    assert ago(-120.0) == "2 min ahead"


def test_several_pipelines_share_a_screen_and_notes_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    views = [Live(topology(name), screen) for name in ("a", "b")]
    for view in views:
        view.__enter__()
        view.update(snapshot(view._topology.name))
    together = drawn(screen._display.renderable)
    views[0].add_note("stopping")
    views[0]._remove()
    alone = drawn(screen._display.renderable)
    views[1].close()
    assert "a · running" in together and "b · running" in together
    assert "a · running" not in alone and "b · running" in alone
    assert "a: stopping" in capsys.readouterr().err
