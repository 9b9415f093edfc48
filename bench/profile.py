"""`python -m bench profile PIPELINE.yaml`: run a pipeline and print where the time of its epochs goes; `--matrix` for ready-made ones."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.profiling.flame import folded, svg
from millstream.errors import MillstreamError


class ProfileError(Exception):
    """Something that the caller can change; shown without a stack trace."""


def main(words: Sequence[str]) -> None:
    options = _options(words)
    try:
        found = _matrix(options) if options.matrix is not None else _one(options)
    except ProfileError as error:
        sys.exit(f"error: {error}")
    except MillstreamError as error:
        sys.exit(str(error))
    print(found)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench profile", description=__doc__)
    parser.add_argument("pipeline", nargs="?", type=Path, help="the pipeline's YAML file; it runs with its own checkpoint")
    parser.add_argument("--epochs", type=int, default=50, help="stop a continuous pipeline after so many measured epochs (50)")
    parser.add_argument("--warm", type=int, default=10, help="leave out the first epochs of each query (10)")
    parser.add_argument("--checkpoint", help="use another checkpoint than the pipeline's own")
    parser.add_argument("--svg", type=Path, help="write a flame graph; the table is then a little higher, since stacks are sampled")
    parser.add_argument("--folded", type=Path, help="write the sampled stacks as text, for other tools")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--matrix", nargs="*", metavar="CASE", help="profile the pipelines of bench/profiles, or some of them")
    options = parser.parse_args(words)
    if (options.pipeline is None) == (options.matrix is None):
        parser.error("give a pipeline's file, or --matrix")
    if options.matrix is not None and (options.svg or options.folded or options.checkpoint):
        parser.error("--svg, --folded and --checkpoint are for one pipeline")
    if options.epochs < 1 or options.warm < 0:
        parser.error("--epochs must be at least 1, and --warm at least 0")
    for written in (options.svg, options.folded):
        if written is not None and not written.absolute().parent.is_dir():
            parser.error(f"there is no folder `{written.parent}`")
    return options


def _one(options: argparse.Namespace) -> str:
    if not options.pipeline.is_file():
        raise ProfileError(f"there is no file `{options.pipeline}`")
    from bench.profiling.run import open_for_profiling, profile
    from bench.profiling.table import as_dict, as_text
    from millstream.plan.settings import RealTime
    from millstream.spec.loader import load

    flags = {"checkpoint": options.checkpoint} if options.checkpoint else {}
    topology = load(options.pipeline, environ=os.environ, flags=flags).require()
    if isinstance(topology.settings.trigger, RealTime):
        raise ProfileError("a pipeline in real-time mode has no epochs that could be measured: leave `trigger` out, or name another one")
    print(f"profiling `{topology.name}`: {options.warm} + {options.epochs} epochs, unless its input ends; Ctrl-C ends it", file=sys.stderr)
    with open_for_profiling(topology) as session:
        sampled = bool(options.svg or options.folded)
        taken = profile(topology, session, options.epochs, options.warm, samples=sampled, stop=_stop_on_interrupt())
    if not taken.epochs:
        raise ProfileError(_nothing(taken.seen, options.warm))
    if options.svg:
        options.svg.write_text(svg(taken.stacks, f"{topology.name}: {len(taken.epochs)} epochs"), encoding="utf-8")
    if options.folded:
        options.folded.write_text(folded(taken.stacks), encoding="utf-8")
    queries = {query: as_dict([each for each in taken.epochs if each.query == query]) for query in {each.query for each in taken.epochs}}
    return _shown(queries, options.format) or "\n\n".join(as_text(query, found) for query, found in queries.items())


def _matrix(options: argparse.Namespace) -> str:
    from bench.profiling.cases import PIPELINES, measure
    from bench.profiling.table import matrix

    if unknown := set(options.matrix) - set(PIPELINES):
        raise ProfileError(f"there is no case {', '.join(sorted(unknown))}; choose from {', '.join(PIPELINES)}")
    found = measure(options.matrix, options.epochs, options.warm, lambda text: print(text, file=sys.stderr, flush=True))
    return _shown(found, options.format) or matrix(found)


def _shown(found: Mapping[str, Any], format_: str) -> str:
    return json.dumps(found) if format_ == "json" else ""


def _nothing(seen: int, warm: int) -> str:
    if seen:
        return f"only {seen} epochs ran, and the first {warm} are left out: use a smaller --warm, or more input"
    return "no epoch ran: the input had no rows, or the pipeline's checkpoint says that it is done (see --checkpoint)"


def _stop_on_interrupt() -> threading.Event:
    """Ctrl-C ends the run, and what was measured is printed."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    return stop
