"""The alert rules and the dashboard, on a real Prometheus that scrapes a real run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.servers.kafka import Cluster
from tests.servers.prometheus import EXAMPLE, RULES, Prometheus
from tools.dashboard import expressions
from tools.prometheus import find

from millstream.dev.ports import free_port
from millstream.inspector.exported_metrics import METRICS

PIPELINE = """
name: shop
sources:
  orders:
    type: kafka
    topic: TOPIC
    bootstrap_servers: ADDRESS
    starting_offsets: earliest
    format: json
    schema: {id: int64, price: string, at: timestamp}
    event_time: {column: at, watermark: 1s}
    max_rows_per_epoch: 2
    on_error: drop
transforms:
  priced: {type: sql, from: orders, sql: "SELECT id, CAST(price AS DOUBLE) AS price, at FROM orders", on_error: drop}
  counted: {type: window, from: priced, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}
sinks:
  out: {type: file, from: counted, path: out, format: json}
"""
KNOWN_ABSENT = {"Lookups with a match"}
"""Panels of which the run has no numbers: it has no lookup."""
SECONDS = 40


@pytest.mark.spark
def test_every_expression_has_an_answer_on_a_real_run(kafka: Cluster, prometheus: Callable[[str], Prometheus], tmp_path: Path) -> None:
    topic = kafka.topic()
    messages = [{"id": i, "price": "1.5", "at": f"2024-01-01T00:{i % 60:02}:00Z"} for i in range(400)]
    kafka.send(topic, ["no json" if message["id"] % 7 == 0 else message for message in messages])
    with running(PIPELINE.replace("TOPIC", topic).replace("ADDRESS", kafka.address), tmp_path) as address:
        server = prometheus(address)
        wait_for(lambda: server.query("sum(increase(millstream_node_rows_rejected_total[1m])) > 0"))
        with suppress(AssertionError):
            wait_for(lambda: not empty_panels(server))
        assert not empty_panels(server)
        wait_for(lambda: all(rule["health"] == "ok" for rule in server.rules()))
        wait_for(lambda: "MillstreamRejects" in firing(server))
        others = firing(server)
        metrics = set(server.ask("label/__name__/values"))
    assert not others & {"MillstreamFailed", "MillstreamDown", "MillstreamRestarts"}
    counters = {
        f"{each.prometheus}_total" for each in METRICS if each.kind == "counter" and not {"lookup", "counted"} & {*each.name.split(".")}
    }
    assert counters <= metrics


@pytest.mark.spark
def test_the_example_fires_its_alert(prometheus: Callable[[str], Prometheus], tmp_path: Path) -> None:
    with running((EXAMPLE / "orders.yaml").read_text().replace("[60, 39, 1]", "[30, 40, 30]"), tmp_path) as address:
        server = prometheus(address)
        wait_for(lambda: server.query('ALERTS{alertname="MillstreamRejects", alertstate="firing", pipeline="orders", node="priced"}'))


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    done = promtool("test", "rules", str(RULES.with_name("alerts.test.yaml")))
    assert done.returncode == 0, done.stdout + done.stderr
    tested = RULES.with_name("alerts.test.yaml").read_text()
    names = [line.split()[-1] for line in RULES.read_text().splitlines() if "- alert:" in line]
    assert len(names) == 10 and all(f"alertname: {name}\n" in tested for name in names), "an alert that is never seen to fire"


def test_expressions_name_only_metrics_of_the_table() -> None:
    known = {name for each in METRICS for name in (each.prometheus, f"{each.prometheus}_total", f"{each.prometheus}_bucket")}
    for text in [text for _, text in expressions()] + RULES.read_text().splitlines():
        words = text.replace("(", " ").replace("[", " ").replace("{", " ").replace(")", " ").split()
        own = {word for word in words if word.startswith("millstream_") and "_process_" not in word and word != "millstream_run_info"}
        assert own <= known, text


def empty_panels(server: Prometheus) -> set[str]:
    def asked(text: str) -> str:
        return text.replace("$__rate_interval", "1m").replace("$pipeline", "shop|other")

    return {f"{title}: {text}" for title, text in expressions() if title not in KNOWN_ABSENT and not server.query(asked(text))}


def firing(server: Prometheus) -> set[str]:
    return {rule["name"] for rule in server.rules() if rule["state"] == "firing"}


def wait_for(found: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return result


@contextmanager
def running(text: str, folder: Path) -> Iterator[str]:
    """A run in a process of its own; the address of its page."""
    (folder / "p.yaml").write_text(text)
    port = free_port()
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--inspect", str(port), "--quiet"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield f"127.0.0.1:{port}"
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    binary = find("promtool")
    if binary is None:
        pytest.skip("Prometheus is not here")
    return subprocess.run([binary, *words], capture_output=True, text=True, check=False)
