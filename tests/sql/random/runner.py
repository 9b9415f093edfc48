"""Runs cases by their seeds, and counts what became of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.sql.random.cases import Case
from tests.sql.random.generator import make_case
from tests.sql.random.oracle import Oracle, Outcome, ViewMaker


@dataclass
class Tally:
    statuses: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    failures: dict[int, Outcome] = field(default_factory=dict)

    def add(self, case: Case, outcome: Outcome) -> None:
        self.statuses[outcome.status] += 1
        if outcome.status == "failed":
            self.failures[case.seed] = outcome
        elif outcome.status == "refused":
            self.refusals[outcome.kind] += 1
        self.empty += outcome.kind == "empty"

    def __add__(self, other: Tally) -> Tally:
        """What two processes have counted."""
        statuses, refusals = self.statuses + other.statuses, self.refusals + other.refusals
        return Tally(statuses, refusals, self.empty + other.empty, self.failures | other.failures)

    def __str__(self) -> str:
        counts = self.statuses
        ran = counts["passed"] + counts["failed"]
        text = f"{ran} cases ran ({self.empty} of them without any row in the result), {counts['failed']} failed, "
        text += f"{counts['skipped']} were skipped, because their result never has a row, "
        text += f"{counts['refused']} were refused by the view, {counts['invalid']} by Spark's batch"
        return "\n".join([text, *(f"  refused {count} times: {kind}" for kind, count in self.refusals.most_common())])


def run(oracle: Oracle, make: ViewMaker, seeds: Iterable[int], tell: Callable[[int, Outcome], None] = lambda *_: None) -> Tally:
    tally = Tally()
    for seed in seeds:
        case = make_case(seed)
        outcome = oracle.judge(case, make, skip=True)
        tally.add(case, outcome)
        if outcome.status == "failed":
            tell(seed, outcome)
    return tally


def until(seconds: float, first: int, least: int = 0) -> Iterable[int]:
    """Seeds, one after another, until the time is over; so many even on a slow machine."""
    end, seed = time.monotonic() + seconds, first
    while time.monotonic() < end or seed < first + least:
        yield seed
        seed += 1
