"""`python -m tests.sql.random SEED COUNT` runs cases, and prints a line for each failing seed and the smallest case of each kind."""

from __future__ import annotations

import argparse
import math
from itertools import islice
from pathlib import Path

from tests.sql.random.generator import make_case
from tests.sql.random.oracle import Oracle, Outcome
from tests.sql.random.runner import run, until
from tests.sql.random.shrink import shrink
from tests.sql.random.subjects import SUBJECTS

from millstream.testing import session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql.random", description=__doc__)
    parser.add_argument("seed", type=int, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds")
    parser.add_argument("--subject", choices=SUBJECTS, default="engine", help="what is tested")
    parser.add_argument(
        "--shrink", type=float, default=120, metavar="SECONDS", help="time to make a failing case small; 0 shows it as it is"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="no further case after this time")
    parser.add_argument("--all", action="store_true", help="shrink every failure, not one of each kind")
    parser.add_argument("--report", type=Path, help="a file to which the smallest cases are added")
    options = parser.parse_args()
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

    tally = run(oracle, make, islice(until(options.seconds, options.seed), options.count), tell)
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
