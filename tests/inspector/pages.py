"""The page in a real browser: what its tests share. Each test leaves pictures of its pages in `.make/screenshots`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.inspector.attended import AttendedRun
from millstream.observe import events
from millstream.observe.facts import EpochFacts

Attend = Callable[..., tuple[AttendedRun, str]]
Open = Callable[..., Any]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PICTURES = Path(__file__).parents[2] / ".make" / "screenshots"
REFUSALS = ("401", "409", "ERR_CONNECTION_REFUSED")
"""Chromium calls it an error when an order is refused, and when a page asks a run that has ended."""
SOON = 2_000
"""Milliseconds in which the page must show what has happened."""


def node(page: Any, name: str) -> Any:
    return page.locator(f'#graph [data-node="{name}"]')


def epoch(run: AttendedRun, number: int = 0, **facts: Any) -> None:
    run.recorder.publish(events.EpochPlanned(query="orders", epoch=number, planned_at=0))
    run.recorder.publish(events.EpochStaged(query="orders", epoch=number, sink="out", seconds=0.1, rows=70))
    run.recorder.publish(events.EpochCommitted(query="orders", epoch=number, sinks=("out",), seconds=0.1))
    run.recorder.read("orders", {"orders": 100})
    run.recorder.epoch(EpochFacts("orders", number, 0.5, {"out": 70}, **{"rejected": {}, "committed": ("out",), **facts}))
