"""A CSV file whose header or delimiter does not match the schema is refused: its rows would all be null."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files, read_committed
from millstream.errors import Diagnostic, MillstreamError

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: csv, schema: {id: int64, amount: int64}, mode: {type: bounded}, max_files_per_epoch: 1OPTIONS}
sinks:
  out: {type: file, from: rows, path: out, format: parquet}
"""


def write(name: str, content: str) -> None:
    Path("in").mkdir(exist_ok=True)
    Path("in", name).write_text(content)


def refused(run: Callable, topology: object) -> Diagnostic:
    with pytest.raises(MillstreamError) as failed:
        run(topology)
    return failed.value.diagnostics[0]


@pytest.mark.parametrize(
    ("content", "help_"),
    [
        ("identifier,value\n1,5\n", "use the header's column names"),
        ("id,amont\n1,5\n", "did you mean `amont`?"),
        ("id;amount\n1;5\n", 'delimiter: ";"'),
        ("id\tamount\n1\t5\n", 'delimiter: "\\t"'),
    ],
)
def test_a_header_that_lacks_columns_is_refused(pipeline: Callable, run: Callable, content: str, help_: str) -> None:
    topology = pipeline(TEXT.replace("OPTIONS", ""))
    write("a.csv", content)
    found = refused(run, topology)
    assert found.code == "MS163"
    assert help_ in found.help
    assert "a.csv" in found.detail
    assert "expected: `id`, `amount`" in found.detail
    assert committed_files("out") == []


def test_columns_may_stand_in_another_order_and_more_may_be_there(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(TEXT.replace("OPTIONS", ", options: {delimiter: ';'}"))
    write("a.csv", "more;Amount;id\nx;5;1\n")
    run(topology)
    assert read_committed("out").to_pylist() == [{"id": 1, "amount": 5}]


@pytest.mark.parametrize("policy", ["", ", on_error: drop"])
def test_a_later_file_with_another_header_is_named(pipeline: Callable, run: Callable, policy: str) -> None:
    topology = pipeline(TEXT.replace("OPTIONS", policy))
    write("a.csv", "id,amount\n1,5\n")
    write("b.csv", "identifier,value\n2,6\n")
    write("c.csv", "id;amount\n3;7\n")
    found = refused(run, topology)
    assert found.code == "MS163"
    assert "b.csv" in found.detail or "c.csv" in found.detail


def test_a_bad_row_is_told_with_its_own_file_and_text(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(TEXT.replace("OPTIONS", ""))
    write("a.csv", "id,amount\n1,5\n2,many\n")
    found = refused(run, topology)
    assert found.code == "MS062"
    assert "a.csv" in found.detail
    assert "value: many" in found.detail
    assert "jdk.internal" not in found.detail
