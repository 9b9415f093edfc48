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
"""Rows, rows of an epoch, turns; the first turn is not counted. A run takes about ten seconds, as its rows are parsed from JSON: what
happens once per run, such as the start of the web server, is no cost of a pipeline that runs for days.
"""
QUERY = """
WITH texts AS (SELECT concat('{"id": ', id, ', "user": "u', id, '", "amount": 12.5}') AS text FROM g),
  orders AS (SELECT from_json(text, 'id BIGINT, user STRING, amount DOUBLE') AS order FROM texts)
SELECT order.id, order.user, sha2(order.user, 256) AS hash FROM orders WHERE order.id % 3 = 0
"""
_LINK = "import sys, time, urllib.request\nurl, _, token = sys.stdin.readline().strip().partition('#')\n"
SCRAPER = """
while True:
    urllib.request.urlopen(url + "metrics").read()
    time.sleep(1)
"""
PAGE = """
import json, threading
def watch():
    while True:
        ask = urllib.request.Request(url + "api/watch", b'{"node": "some"}', {"Authorization": "Bearer " + token})
        urllib.request.urlopen(ask).read()
        time.sleep(5)
threading.Thread(target=watch, daemon=True).start()
for line in urllib.request.urlopen(url + "facts"):
    pass
"""
COLLECTOR = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
WAYS = ("off", "facts", "scraped", "inspected", "traced")


def main() -> None:
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    found: dict[str, dict[str, list[float]]] = {}
    for work, (rows, size, turns) in WORKS.items():
        times: dict[str, list[float]] = {way: [] for way in WAYS}
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
    with ExitStack() as stack:
        trace, otlp = "", ""
        if way == "traced":
            port = stack.enter_context(_process(COLLECTOR)).stdout.readline().strip()  # type: ignore[union-attr]  # it is a pipe
            trace, otlp = "telemetry: {trace: {ratio: 0.01}},", f", telemetry: {{otlp: {{endpoint: 'http://127.0.0.1:{port}'}}}}"
        topology = loads(
            f"sources: {{g: {{type: generator, rows: {rows}, rows_per_epoch: {size}, {trace} fields: {{id: {{type: sequence}}}}}}}}\n"
            f"transforms: {{some: {{type: sql, sql: {json.dumps(QUERY)}}}}}\n"
            f"sinks: {{out: {{type: blackhole, from: some}}}}\nsettings: {{checkpoint: {folder}/ck, durability: process{otlp}}}"
        ).require()
        if way == "off":
            stack.enter_context(patch.object(engine, "attended", lambda *_: nullcontext()))
            stack.enter_context(patch.object(EventStream, "publish", lambda *_: None))
        readers = [stack.enter_context(_process(_LINK + script)) for name, script in READERS.items() if name == way]
        inspect = InspectAddress() if readers else None
        started = time.perf_counter()
        spark.run(topology, RunOptions(inspect=inspect, tell=lambda _: _tell_link(readers)))
        taken = time.perf_counter() - started
    shutil.rmtree(Path(folder), ignore_errors=True)
    return taken


READERS = {"scraped": SCRAPER, "inspected": PAGE}


def _tell_link(readers: list[subprocess.Popen[str]]) -> None:
    """Tell waiting readers the link of the page, when it is open; it is asked for as `millstream inspect` does."""

    def tell() -> None:
        (run,) = running(os.environ)
        for reader in readers:
            assert reader.stdin is not None
            reader.stdin.write(f"{Client(run).order('page')['url']}\n")
            reader.stdin.flush()

    threading.Timer(0.1, tell).start()


@contextmanager
def _process(script: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has started before the clock does."""
    command = [sys.executable, "-c", script]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        time.sleep(0.3)
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
