"""Readers cost a run no memory that stays: one that comes and goes a thousand times, and one that stalls."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable

import pytest

from millstream.inspector.attended import AttendedRun
from millstream.inspector.client import Client
from millstream.inspector.registration import find
from millstream.observe.facts import EpochFacts

pytestmark = pytest.mark.server  # it takes some seconds, and the quick lane has few
Attend = Callable[..., tuple[AttendedRun, str]]


def test_a_thousand_visits_and_a_stalled_reader_leave_the_memory_as_it_was(attend: Attend) -> None:
    run, _ = attend()
    stalled = Client(find("shop", os.environ)).events()
    next(stalled)

    def visit(times: int) -> None:
        for number in range(times):
            told = Client(find("shop", os.environ)).events()
            next(told)
            for each in range(5):
                run.recorder.epoch(EpochFacts("orders", 5 * number + each, 0.1, {"out": 5}, {}, (), ("out",)))
            told.close()

    def held() -> int:
        time.sleep(3)  # the history has been written
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start(1)
    visit(200)  # buffers fill
    before = held()
    visit(1000)
    grown = held() - before
    tracemalloc.stop()
    stalled.close()
    assert grown < 1_500_000, f"{grown:,} bytes for 1,000 visits"
