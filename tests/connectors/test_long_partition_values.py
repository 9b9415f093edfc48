"""A value that no directory can be named after is a bad row: `on_error` decides, and the message names column and value."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  rows: {{type: file, path: in.json, format: json, schema: {{id: int64, k: string}}, mode: {{type: bounded}}}}
sinks:
  out: {{type: file, from: rows, path: out, format: json, partition_by: [k], on_error: {on_error}}}
"""
LETTERS = "  bad: {type: file, path: bad, format: json}\n"
FITS = ["x" * 253, "ä" * 126, "/" * 84, "", None]
LONG = ["x" * 254, "ä" * 127, "/" * 85, "a\0b"]


@pytest.fixture
def go(tmp_path: Path, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., Report]:
    def start(values: list[str | None], on_error: str) -> Report:
        lines = [json.dumps({"id": number, "k": value}) for number, value in enumerate(values)]
        (tmp_path / "in.json").write_text("\n".join(lines))
        return run(pipeline(PIPELINE.format(on_error=on_error) + (LETTERS if "bad" in on_error else "")))

    return start


def written(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for file in committed_files(path) for line in Path(file).read_text().splitlines()]


def test_what_just_fits_is_written(go: Callable[..., Report]) -> None:
    go(FITS, "fail")
    assert sorted(row["id"] for row in written("out")) == [0, 1, 2, 3, 4]  # type: ignore[type-var]


@pytest.mark.parametrize("value", LONG, ids=["letters", "bytes", "escaped", "nul"])
def test_one_byte_more_stops_the_run_by_name(go: Callable[..., Report], value: str) -> None:
    with pytest.raises(RunError, match="MS166") as failure:
        go([*FITS, value], "fail")
    message = str(failure.value)
    assert "`out`: `k` " in message
    assert len(message) < 900
    assert written("out") == []


def test_such_rows_can_be_dropped_or_kept(go: Callable[..., Report]) -> None:
    go(FITS + LONG, "{dead_letter: bad}")
    assert sorted(row["id"] for row in written("out")) == [0, 1, 2, 3, 4]  # type: ignore[type-var]
    letters = written("bad")
    assert sorted(json.loads(str(letter["raw"]))["id"] for letter in letters) == [5, 6, 7, 8]
    assert all("`k` " in str(letter["error"]) for letter in letters)


def test_dropped_rows_are_counted(go: Callable[..., Report]) -> None:
    report = go(FITS + LONG, "drop")
    assert len(written("out")) == 5
    assert report.nodes["out"].rejected == 4
