"""Several sinks share an epoch: an expensive source is read once for all of them, a cheap one again for each."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: FORMAT, schema: {id: int64}, mode: {type: bounded}}
transforms:
  TRANSFORM
sinks:
  one: {type: memory, from: INPUT}
  two: {type: memory, from: INPUT}
  three: {type: blackhole, from: INPUT}
"""
CALLS = """
from pathlib import Path
def count(batch):
    if batch.num_rows:
        with open({log!r}, "a") as file:
            file.write("call\\n")
    return batch
"""


def test_the_python_function_above_three_sinks_runs_once(pipeline: Callable, run: Callable, tmp_path: Path) -> None:
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1}\n{"id": 2}\n')
    log = tmp_path / "calls.log"
    Path("steps.py").write_text(CALLS.format(log=str(log)))
    step = "step: {type: python, from: rows, function: steps.py:count, schema: {id: int64}}"
    run(pipeline(TEXT.replace("FORMAT", "json").replace("TRANSFORM", step).replace("INPUT", "step")))
    assert log.read_text().splitlines() == ["call"]


@pytest.mark.parametrize(("format", "kept"), [("json", 1), ("parquet", 0)], ids=["expensive", "cheap"])
def test_only_a_dear_source_is_kept(pipeline: Callable, run: Callable, format: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    persisted: list[object] = []
    persist = DataFrame.persist
    Path("in").mkdir()
    if format == "json":
        Path("in/a.json").write_text('{"id": 1}\n{"id": 2}\n')
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": [1, 2]}), "in/a.parquet")
    topology = pipeline(TEXT.replace("FORMAT", format).replace("  TRANSFORM\n", "").replace("transforms:\n", "").replace("INPUT", "rows"))
    monkeypatch.setattr(DataFrame, "persist", lambda self, *a: (persisted.append(self), persist(self, *a))[1])
    report = run(topology)
    assert len(persisted) == kept
    assert report.nodes["rows"].rows_out == 2
    assert [len(topology.node(name).component.rows()) for name in ("one", "two")] == [2, 2]


def test_rows_that_differ_each_time_are_the_same_in_every_sink(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources: {rows: {type: generator, rows: 50, fields: {id: {type: sequence}}}}
        transforms: {dice: {type: sql, sql: "SELECT id, uuid() AS u, rand() AS r FROM rows"}}
        sinks: {one: {type: memory, from: dice}, two: {type: file, from: dice, path: out, format: json}}
    """)
    run(topology)
    from millstream import committed_files

    written = {(row["id"], row["u"]) for file in committed_files("out") for row in map(json.loads, Path(file).read_text().splitlines())}
    assert {(row["id"], row["u"]) for row in topology.node("one").component.rows()} == written
    assert len({u for _, u in written}) == 50
