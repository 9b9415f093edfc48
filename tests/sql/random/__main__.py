"""`python -m tests.sql.random SEED COUNT` runs cases, and prints a line for each failing seed and the smallest case of each kind.

A case keeps one core busy, so there is a process for each core: all of them take their share of the seeds.
"""

from __future__ import annotations

import argparse
import math
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.sql.random.runner import Tally
from tests.sql.random.shares import run_share
from tests.sql.random.subjects import SUBJECTS

LEAST = 10
"""A process takes some 10 s to start: it should have so many cases."""


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
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many run beside each other")
    options = parser.parse_args()
    processes = max(1, min(options.processes, options.count // LEAST))
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        tallies = list(pool.map(partial(run_share, options, processes), range(processes)))
    tally = sum(tallies, Tally())
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
