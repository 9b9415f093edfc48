"""The pipelines of `bench/profiles` with 1, 100 and 100,000 rows an epoch, each on its own session, and with the server that it needs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.figures import ROOT
from bench.profiling.run import open_for_profiling, profile
from bench.profiling.table import as_dict
from millstream.plan.topology import Topology
from millstream.spec.loader import load

SIZES = (1, 100, 100_000)
PIPELINES = {"file": "file_to_file", "kafka": "kafka_to_kafka", "postgres": "generator_to_postgres", "windows": "windows"}
_LARGE, _FEWER = 10_000, 8
"""Cases of at least so many rows have a part of the epochs."""
Variables = Mapping[str, str]


def measure(chosen: Sequence[str], epochs: int, warm: int, tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """`file 1` → what its profile says, and so on; all cases if none is named."""
    found: dict[str, dict[str, Any]] = {}
    for name in chosen or PIPELINES:
        with tempfile.TemporaryDirectory() as folder, _server(name) as (variables, fill):
            found |= _measure(name, Path(folder), variables, fill, epochs, warm, tell)
    return found


def _measure(
    name: str,
    folder: Path,
    variables: Variables,
    fill: Callable[[Path, int, int], None],
    epochs: int,
    warm: int,
    tell: Callable[[str], None],
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        session = None
        for rows in SIZES:
            own, few = folder / str(rows), _FEWER if rows >= _LARGE else 1
            counted, left_out = max(1, epochs // few), max(2, warm // few)
            fill(own, rows, counted + left_out)
            topology = _load(name, own, rows, variables)
            session = session or stack.enter_context(open_for_profiling(topology))
            taken = profile(topology, session, counted, left_out, samples=False)
            case = found[f"{name} {rows:,}"] = as_dict(taken.epochs)
            tell(f"{name}, {rows:,} rows: {case['epochs']} epochs, {case['duration']['p50']:.0f} ms")
    return found


def _load(name: str, folder: Path, rows: int, variables: Variables) -> Topology:
    step = max(1, 10_000 // rows)
    own = {"FOLDER": str(folder), "ROWS": str(rows), "STEP": f"{step}ms"}
    return load(ROOT / f"bench/profiles/{PIPELINES[name]}.yaml", environ={**variables, **own}).require()


@contextmanager
def _server(name: str) -> Iterator[tuple[Variables, Callable[[Path, int, int], None]]]:
    """The variables of a pipeline, and the function that makes the input of a case."""
    if name == "kafka":
        from millstream.dev.kafka import start_broker

        with start_broker() as broker:
            yield {"ADDRESS": broker.address}, lambda _, rows, epochs: _fill_topic(broker.address, rows, epochs)
    elif name == "postgres":
        from millstream.dev.postgres import start_postgres

        with start_postgres() as server:
            yield {"PORT": str(server.port)}, lambda *_: _make_table(server.address.text)
    else:
        yield {}, _write_files if name == "file" else lambda *_: None


def _lines(rows: int) -> list[str]:
    return [json.dumps({"id": number, "k": number % 1000, "note": "a short note"}) for number in range(rows)]


def _write_files(folder: Path, rows: int, epochs: int) -> None:
    (folder / "in").mkdir(parents=True)
    text = "\n".join(_lines(rows))
    for number in range(epochs):
        (folder / f"in/{number:05d}.json").write_text(text, encoding="utf-8")


def _fill_topic(address: str, rows: int, epochs: int) -> None:
    """One partition where an epoch has one row: Spark takes rows from every partition."""
    from confluent_kafka import Producer

    from bench.kafka.rows import new_topic

    partitions = 1 if rows == 1 else 4
    for topic in ("in", "out"):
        new_topic(address, f"{topic}{rows}", partitions)
    producer, lines = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1 << 20}), _lines(rows)
    for number in range(rows * epochs):
        producer.produce(f"in{rows}", lines[number % rows], partition=number % partitions)
        if number % 10_000 == 0:
            while len(producer) > 500_000:
                producer.poll(0.01)
    if producer.flush(120):
        raise RuntimeError("the broker does not take the rows")


def _make_table(address: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS profile")
        connection.execute("CREATE TABLE profile (id bigint PRIMARY KEY, k bigint, note text)")
