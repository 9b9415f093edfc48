"""OpenLineage: a start, signs of life and one end, in the form of its JSON Schema, with datasets, columns and what they are made of."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from tests.inspector.conftest import CANARY

from millstream.errors import Diagnostic, RunError
from millstream.spec.loader import loads

SCHEMAS = Path(__file__).parent / "openlineage"
PIPELINE = """
name: shop
sources:
  orders:
    type: kafka
    topic: orders
    format: json
    schema: {id: int64, user: string, amount: float64}
    bootstrap_servers: "broker:9092"
    security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: secret://env/CANARY}
transforms:
  spent: {type: sql, sql: "SELECT upper(user) AS user, amount * 2 AS twice, id FROM orders WHERE id > 1"}
sinks:
  table: {type: postgres, from: spent, host: db, database: app, table: spent, user: u, password: secret://env/CANARY, mode: append}
  files: {type: file, from: orders, path: s3a://bucket/in/orders, format: parquet}
  seen: {type: blackhole, from: orders}
settings: {telemetry: {lineage: LINEAGE}}
"""


def registry() -> Registry:
    found = [json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")]
    return Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in found])


def assert_valid(event: dict[str, Any]) -> None:
    """The event by the schema it names, and each facet by its own."""
    everything = registry()

    def check(reference: str, value: Any) -> None:
        Draft202012Validator({"$ref": reference}, registry=everything, format_checker=FormatChecker()).validate(value)

    check(event["schemaURL"], event)
    datasets = [*event["inputs"], *event["outputs"]]
    facets = [
        event["run"]["facets"],
        event["job"]["facets"],
        *(each["facets"] for each in datasets),
        *(each.get("outputFacets", {}) for each in datasets),
    ]
    for name, facet in [pair for each in facets for pair in each.items()]:
        check(facet["_schemaURL"], {name: facet})
        assert name in everything.contents(facet["_schemaURL"])["properties"], name


def wait_for(true: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_run_tells_its_start_its_life_and_its_end(attend: Callable[..., Any], tmp_path: Path) -> None:
    file, stack = tmp_path / "lineage.jsonl", ExitStack()
    run, _ = attend(PIPELINE.replace("LINEAGE", f"{{file: {file}, every: 100ms, namespace: shop-jobs}}"), stack=stack)
    run.recorder.add("table", "sink", rows_in=7)
    wait_for(lambda: len(lines(file)) > 2)
    run.recorder.state("stopped")
    stack.close()
    events = lines(file)
    kinds = [event["eventType"] for event in events]
    assert kinds[0] == "START" and set(kinds[1:-1]) == {"RUNNING"} and kinds[-1] == "COMPLETE"
    assert len({event["run"]["runId"] for event in events}) == 1
    for event in events:
        assert_valid(event)
    last = events[-1]
    assert (last["job"]["namespace"], last["job"]["name"]) == ("shop-jobs", "shop")
    assert last["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert CANARY not in file.read_text()


def test_datasets_have_columns_and_their_origins(attend: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    attend(PIPELINE.replace("LINEAGE", f"{{file: {file}}}"))
    wait_for(lambda: lines(file))
    event = lines(file)[0]
    (orders,) = event["inputs"]
    assert (orders["namespace"], orders["name"]) == ("kafka://broker:9092", "orders")
    assert {each["name"]: each["type"] for each in orders["facets"]["schema"]["fields"]} == {
        "id": "int64",
        "user": "string",
        "amount": "float64",
    }
    outputs = {each["name"]: each for each in event["outputs"]}
    assert {name: each["namespace"] for name, each in outputs.items()} == {
        "app.public.spent": "postgres://db:5432",
        "in/orders": "s3://bucket",
    }
    lineage = outputs["app.public.spent"]["facets"]["columnLineage"]["fields"]
    assert {
        name: [(part["field"], part["transformations"][0]["subtype"]) for part in each["inputFields"]] for name, each in lineage.items()
    } == {
        "user": [("user", "TRANSFORMATION")],
        "twice": [("amount", "TRANSFORMATION")],
        "id": [("id", "IDENTITY")],
    }


def test_a_failure_is_told_with_its_message(attend: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    with suppress(RunError), ExitStack() as stack:
        attend(PIPELINE.replace("LINEAGE", f"{{file: {file}}}"), stack=stack)
        raise RunError(Diagnostic("MS060", f"no file, {CANARY}"))
    event = lines(file)[-1]
    assert event["eventType"] == "FAIL" and event["run"]["facets"]["errorMessage"]["message"].startswith("MS060: no file")
    assert CANARY not in file.read_text()
    assert_valid(event)


def test_events_are_posted(attend: Callable[..., Any]) -> None:
    with receiver() as (url, received), ExitStack() as stack:
        run, _ = attend(PIPELINE.replace("LINEAGE", f'{{url: "{url}", headers: {{authorization: secret://env/CANARY}}}}'), stack=stack)
        run.recorder.state("done")
        stack.close()
    assert [event["eventType"] for _, event in received] == ["START", "COMPLETE"]
    assert received[0][0] == CANARY


def test_a_receiver_that_does_not_answer_is_one_warning(attend: Callable[..., Any]) -> None:
    with receiver() as (url, _):
        pass
    run, _ = attend(PIPELINE.replace("LINEAGE", f'{{url: "{url}", every: 100ms}}'))
    time.sleep(0.5)
    assert len([note for note in run.recorder.snapshot().notes if "lineage does not reach" in note]) == 1


@pytest.mark.parametrize("lineage", ["{}", "{url: 'http://h/x', file: f}", "{url: 'h/x'}"])
def test_settings_without_one_receiver_are_refused(lineage: str) -> None:
    found = loads(PIPELINE.replace("LINEAGE", lineage)).diagnostics
    errors = [each for each in found if each.level == "error"]
    assert len(errors) == 1 and errors[0].span is not None


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    received: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
            received.append((self.headers["Authorization"], json.loads(body)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/api/v1/lineage", received
    finally:
        server.shutdown()
        server.server_close()
