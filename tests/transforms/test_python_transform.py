"""A user's function on Spark: its modules reach the workers, its schema is found, its failures name the node."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.errors import RunError
from millstream.transforms.python import Python

ROWS = "SELECT id AS x, concat('t', id) AS t, TIMESTAMP '2026-01-01 00:00:00' AS at FROM range(4)"
OUT = {"x": "int64", "t": "string"}


def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["t", "x"])


def test_it_survives_the_way_to_yaml_and_back() -> None:
    python = Python(function="steps.py:go", schema={"a": "int64"}, batch_size=10, deterministic=False)
    again = Python.model_validate(python.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == python
    assert hash(again) == hash(python)
    assert (python.deterministic, Python(function="a:b").deterministic) == (False, True)


def test_a_missing_function_is_found_without_running_anything(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("raise SystemExit('this must not run')\ndef score(batch): ...\n")
    assert [problem.code for problem in Python(function="steps.py:scor").problems({}, tmp_path)] == ["MS016"]
    assert Python(function="steps.py:score").problems({}, tmp_path) == []


def test_the_schema_is_found_by_calling_it_with_no_rows(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64()), ("t", pa.string())])
    assert Python(function=keep).discover({"rows": schema}, tmp_path).names == ["t", "x"]
    assert Python(function=keep).output({"rows": schema}) is None


@pytest.mark.parametrize(
    "function",
    [lambda batch: batch["x"][0], lambda batch: [], lambda batch: pa.RecordBatch.from_pydict({"a": []})],
    ids=["fails", "no batch", "no type"],
)
def test_when_that_does_not_work_a_schema_is_asked_for(function: Callable, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="MS064") as failed:
        Python(function=function).discover({"rows": pa.schema([("x", pa.int64())])}, tmp_path)
    assert "called once with no rows" in failed.value.diagnostics[0].message
    assert "schema" in failed.value.diagnostics[0].help


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda batch: 3, "return a RecordBatch"),
        (lambda batch, other: batch, "correct the function"),
        (lambda batch: batch.colum("x"), "correct the function at "),
    ],
    ids=["no batch at all", "arguments", "a wrong name"],
)
def test_a_function_that_would_fail_with_any_rows_is_to_be_corrected(function: Callable, advice: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="MS064") as failed:
        Python(function=function).discover({"rows": pa.schema([("x", pa.int64())])}, tmp_path)
    assert advice in failed.value.diagnostics[0].help
    assert "schema" not in failed.value.diagnostics[0].help


@pytest.mark.spark
@pytest.mark.parametrize("schema", [OUT, None], ids=["declared", "found"])
def test_rows_come_out(result: Callable, schema: dict | None) -> None:
    assert sorted(row["x"] for row in result(Python(function=keep, schema=schema), rows=ROWS)) == [0, 1, 2, 3]


@pytest.mark.spark
def test_lambdas_and_what_they_close_over_travel(result: Callable) -> None:
    factor = 10
    doubled = Python(
        function=lambda batch: pa.RecordBatch.from_pydict({"x": [x * factor for x in batch["x"].to_pylist()]}), schema={"x": "int64"}
    )
    assert sorted(row["x"] for row in result(doubled, rows=ROWS)) == [0, 10, 20, 30]


@pytest.mark.spark
@pytest.mark.parametrize("reference", ["steps.py:go", "pkg.steps_of_test:go"])
def test_modules_beside_the_pipeline_reach_the_workers(result: Callable, tmp_path: Path, reference: str) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tables_of_test.py").write_text(
        "class Table:\n    names = {'t1': 'one'}\n\ndef name(text):\n    return Table.names.get(text)\n"
    )
    (tmp_path / "late_of_test.py").write_text("SUFFIX = '!'\n")
    code = """
import pyarrow as pa
from pkg.tables_of_test import name

def go(batch):
    from late_of_test import SUFFIX
    return pa.RecordBatch.from_pydict({"t": pa.array([(name(t) or "") + SUFFIX for t in batch["t"].to_pylist()], pa.string())})
"""
    (tmp_path / "steps.py").write_text(code)
    (package / "steps_of_test.py").write_text(code)
    sys.path.insert(0, str(tmp_path))
    try:
        rows = result(Python(function=reference, schema={"t": "string"}), rows=ROWS)
    finally:
        sys.path.remove(str(tmp_path))
        for name in [name for name in sys.modules if name == "pkg" or name.startswith("pkg.") or name == "late_of_test"]:
            del sys.modules[name]
    assert sorted(row["t"] for row in rows) == ["!", "!", "!", "one!"]


@pytest.mark.spark
def test_by_reference_they_would_not(spark: Any, tmp_path: Path) -> None:
    """What registering them by value is for."""
    (tmp_path / "alone_of_test.py").write_text("def go(batches):\n    yield from batches\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import alone_of_test

        with pytest.raises(Exception, match="alone_of_test"):
            spark.range(1).mapInArrow(alone_of_test.go, "id long").collect()
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["alone_of_test"]


@pytest.mark.spark
def test_a_failure_names_the_node_and_shows_the_user_s_line(result: Callable, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text("def go(batch):\n    raise KeyError('what')\n")
    with pytest.raises(Exception, match="millstream-node: scored") as failed:
        result(Python(function="raising.py:go", schema=OUT), node="scored", rows=ROWS)
    text = str(failed.value)
    assert "KeyError: 'what'" in text
    assert f'File "{tmp_path}/raising.py", line 2, in go' in text


@pytest.mark.spark
def test_bad_rows_are_isolated(result: Callable) -> None:
    def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
        if "t2" in batch["t"].to_pylist():
            raise ValueError("not t2")
        return keep(batch)

    rows = result(Python(function=picky, schema=OUT), isolate=True, rows=ROWS)
    assert sorted(row["x"] for row in rows if row["_reject"] is None) == [0, 1, 3]
    (bad,) = [row["_reject"] for row in rows if row["_reject"]]
    assert bad["error"] == "ValueError: not t2"
    assert '"t": "t2"' in bad["raw"]


@pytest.mark.spark
def test_every_type_goes_there_and_back(spark: Any, result: Callable, apply: Callable) -> None:
    rows = """SELECT 1.50BD AS d, TIMESTAMP '2026-01-01 00:00:00.000001' AS z, TIMESTAMP_NTZ '2026-01-01 00:00:00' AS l,
              DATE '2026-01-01' AS y, array('a') AS a, map('k', 1) AS m, named_struct('f', 1L) AS s,
              CAST('x' AS binary) AS b, CAST(NULL AS string) AS n"""
    same = Python(function=lambda batch: batch)
    assert result(same, rows=rows) == [row.asDict(True) for row in spark.sql(rows).collect()]
    assert apply(same, rows=rows).schema.simpleString() == (
        "struct<d:decimal(3,2),z:timestamp,l:timestamp_ntz,y:date,a:array<string>,m:map<string,int>,s:struct<f:bigint>,b:binary,n:string>"
    )
