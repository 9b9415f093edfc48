"""Files that are missing, empty, forbidden or malformed: one clear error each, and nothing half-written."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files, read_committed
from millstream.errors import MillstreamError

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: file, path: in, format: FORMAT, SCHEMA mode: {type: bounded}, on_error: POLICY}
sinks:
  out: {type: file, from: rows, path: out, format: parquet}
"""


def text(format: str = "json", schema: str = "schema: {id: int64, name: string},", policy: str = "fail") -> str:
    return TEXT.replace("FORMAT", format).replace("SCHEMA", schema).replace("POLICY", policy)


def code(run: Callable, topology: object) -> str:
    with pytest.raises(MillstreamError) as failed:
        run(topology)
    assert committed_files("out") == []
    return failed.value.diagnostics[0].code


def write(name: str, content: str) -> None:
    Path("in").mkdir(exist_ok=True)
    Path("in", name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("schema", ["", "schema: {id: int64, name: string},"], ids=["inferred", "given"])
def test_a_missing_path(pipeline: Callable, run: Callable, schema: str) -> None:
    assert code(run, pipeline(text(schema=schema))) == "MS060"


@pytest.mark.parametrize("schema", ["", "schema: {id: int64, name: string},"], ids=["inferred", "given"])
def test_an_empty_directory(pipeline: Callable, run: Callable, schema: str) -> None:
    topology = pipeline(text(schema=schema))
    Path("in").mkdir()
    assert code(run, topology) == "MS060"


@pytest.mark.parametrize(
    ("format", "content"),
    [("json", '{"id": 1, "name": "a"}\n{"id": "x", "name": 3\n'), ("csv", "id,name\n1,a\nx,b\n")],
)
def test_malformed_rows_fail_by_default(pipeline: Callable, run: Callable, format: str, content: str) -> None:
    topology = pipeline(text(format))
    write(f"a.{format}", content)
    assert code(run, topology) == "MS062"


def test_rows_of_mixed_schemas_keep_what_the_schema_names(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(text())
    write("a.json", '{"id": 1, "name": "a", "more": true}\n{"id": 2}\n{"name": "c"}\n')
    run(topology)
    assert sorted(read_committed("out").to_pylist(), key=str) == sorted(
        [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": None, "name": "c"}], key=str
    )


def test_columns_may_have_reserved_and_unicode_names(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        sources:
          größen: {type: file, path: in, format: json, schema: {select: int64, "größe": string, "a b": int64}, mode: {type: bounded}}
        transforms:
          t: {type: sql, sql: "SELECT `select`, `größe`, `a b` + 1 AS `from` FROM `größen` WHERE `select` > 0"}
        sinks:
          out: {type: file, from: t, path: out, format: parquet}
    """)
    write("ä b.json", '{"select": 1, "größe": "ß", "a b": 2}\n')
    run(topology)
    assert read_committed("out").to_pylist() == [{"select": 1, "größe": "ß", "from": 3}]


FORBIDDEN = """
import sys
sys.argv = ["millstream", "run", "p.yaml"]
from millstream.cli import main
main()
"""


@pytest.mark.parametrize(("place", "said"), [("in", "MS061"), ("out", "MS06")], ids=["reading", "writing"])
def test_a_directory_without_permission(tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "p.yaml").write_text(text())
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1, "name": "a"}\n')
    (tmp_path / place).chmod(0o000)
    command = [sys.executable, "-c", FORBIDDEN]
    if os.geteuid() == 0:  # root may read everything, unless it gives that up
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search", *command]
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        (tmp_path / place).chmod(0o755)
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert committed_files(str(tmp_path / "out")) == []
