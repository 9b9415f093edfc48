"""What one process runs of the cases: it shows failures as they come, and shrinks the first of each kind."""

from __future__ import annotations

import argparse
from itertools import islice

from tests.sql.random.generator import make_case
from tests.sql.random.oracle import Oracle, Outcome
from tests.sql.random.runner import Tally, run, until
from tests.sql.random.shrink import shrink
from tests.sql.random.subjects import SUBJECTS

from millstream.testing import session


def run_share(options: argparse.Namespace, processes: int, process: int) -> Tally:
    """The cases of one process."""
    oracle, make = Oracle(session()), SUBJECTS[options.subject]
    seen: set[str] = set()

    def tell(seed: int, outcome: Outcome) -> None:
        print(f"SEED {seed}: {outcome.kind}", flush=True)
        if outcome.kind in seen and not options.all:
            return
        seen.add(outcome.kind)
        case = make_case(seed)
        if options.shrink:
            case = shrink(case, lambda smaller: oracle.judge(smaller, make).kind == outcome.kind, options.shrink)
            outcome = oracle.judge(case, make)
        text = f"SEED {seed}: {outcome.kind}\n{outcome.report}\n"
        print(text, flush=True)
        if options.report:
            with options.report.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")

    seeds = islice(until(options.seconds, options.seed), process, options.count, processes)
    return run(oracle, make, seeds, tell)
