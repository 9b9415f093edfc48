"""Runs the same pipeline without facts, with facts, and with readers, in turns in one session. Prints the seconds of each run.

The readers are processes of their own, as Prometheus and a browser are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from bench.figures import ROOT
from millstream.engine import engine
from millstream.engine.engine import SparkEngine
from millstream.inspector.client import Client
from millstream.inspector.registration import running
from millstream.jvm.session import SessionOptions, begin
from millstream.observe.stream import EventStream
from millstream.plan.run_options import InspectAddress, RunOptions
from millstream.spec.loader import loads

WORKS = {"20 M rows": (20_000_000, 2_000_000, 6), "1,000-row epochs": (1_000_000, 1_000, 6)}
"""Rows, rows of an epoch, turns; the first turn is not counted. A run takes about ten seconds: what happens once per run, such as the
import of the web server, is no cost of a pipeline that runs for days.
"""
SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1] + "metrics").read()
    time.sleep(1)
"""
PAGE = """
import json, sys, threading, time, urllib.request
url, token = sys.argv[1], sys.argv[2]
def watch():
    while True:
        ask = urllib.request.Request(url + "api/watch", b'{"node": "some"}', {"Authorization": "Bearer " + token})
        urllib.request.urlopen(ask).read()
        time.sleep(5)
threading.Thread(target=watch, daemon=True).start()
for line in urllib.request.urlopen(url + "facts"):
    pass
"""


def main() -> None:
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    found: dict[str, dict[str, list[float]]] = {}
    for work, (rows, size, turns) in WORKS.items():
        times: dict[str, list[float]] = {way: [] for way in ("off", "facts", "scraped", "inspected")}
        for turn in range(turns):
            for way, seconds in times.items():
                taken = _run(SparkEngine(session.spark), rows, size, way)
                if turn:
                    seconds.append(taken)
        found[work] = times
    session.close()
    print(json.dumps(found))


def _run(spark: SparkEngine, rows: int, size: int, way: str) -> float:
    folder = tempfile.mkdtemp()
    topology = loads(
        f"sources: {{g: {{type: generator, rows: {rows}, rows_per_epoch: {size}, fields: {{id: {{type: sequence}}}}}}}}\n"
        "transforms: {some: {type: sql, sql: 'SELECT id, sha2(CAST(id AS STRING), 256) AS hash FROM g WHERE id % 3 = 0'}}\n"
        f"sinks: {{out: {{type: blackhole, from: some}}}}\nsettings: {{checkpoint: {folder}/ck, durability: process}}"
    ).require()
    with ExitStack() as stack:
        if way == "off":
            stack.enter_context(patch.object(engine, "attended", lambda *_: nullcontext()))
            stack.enter_context(patch.object(EventStream, "publish", lambda *_: None))
        readers = stack.enter_context(_readers(way))
        inspect = InspectAddress() if readers else None
        started = time.perf_counter()
        spark.run(topology, RunOptions(inspect=inspect, tell=lambda _: _start(readers)))
        taken = time.perf_counter() - started
    shutil.rmtree(Path(folder), ignore_errors=True)
    return taken


def _start(readers: list[tuple[str, list[subprocess.Popen[bytes]]]]) -> None:
    """Start the readers when the page is open. Its link is asked for as `millstream inspect` does."""

    def start() -> None:
        (run,) = running(os.environ)
        url, _, token = Client(run).order("page")["url"].partition("#")
        for script, started in readers:
            started.append(subprocess.Popen([sys.executable, "-c", script, url, token], cwd=ROOT, stderr=subprocess.DEVNULL))

    threading.Timer(0.1, start).start()


@contextmanager
def _readers(way: str) -> Iterator[list[tuple[str, list[subprocess.Popen[bytes]]]]]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield [(script, started) for name, script in (("scraped", SCRAPER), ("inspected", PAGE)) if name == way]
    finally:
        for process in started:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
