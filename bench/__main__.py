"""`python -m bench [question …]`: measure and print."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

from bench.figures import ROOT, Figure

QUESTIONS = (
    "check",
    "startup",
    "throughput",
    "epochs",
    "flat",
    "observe",
    "durability",
    "generator",
    "footprint",
    "windows",
    "process",
    "state",
    "sql",
    "extend",
    "peers",
)
KAFKA = ("kafka.source", "kafka.decoding", "kafka.sink", "kafka.latency", "kafka.peers")
POSTGRES = ("postgres.sink", "postgres.latency", "postgres.lookups")


def main() -> None:
    if sys.argv[1:2] == ["profile"]:
        from bench.profile import main as profile

        profile(sys.argv[2:])
        return
    every = (*QUESTIONS, *KAFKA, *POSTGRES)
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure against hand-written PySpark, and print the ratios. `profile` shows where the time of epochs goes.",
    )
    parser.add_argument("question", nargs="*", help=f"what to measure; all if none is given: {', '.join(every)}")
    chosen = parser.parse_args().question
    if unknown := set(chosen) - set(every):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(every)}")
    os.chdir(ROOT)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ratios are ours / theirs, medians of runs taken in turns\n")
    for question in chosen or every:
        module = importlib.import_module(f"bench.{question}")
        started = time.perf_counter()
        figures: list[Figure] = module.measure()
        print(f"{question}: {(module.__doc__ or '').splitlines()[0]}")
        print("\n".join(str(figure) for figure in figures))
        print(f"  ({time.perf_counter() - started:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
