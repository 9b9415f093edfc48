"""`millstream types` prints the rows of a script, and `check --types` asks TypeScript's compiler about it."""

import stat
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from millstream.cli import application
from millstream.plan import types
from millstream.scripts.declarations import declare_rows
from millstream.scripts.tokens import tokens_of
from millstream.worker.scripts.values import describe_type

PIPELINE = """
sources:
  orders: {type: memory, rows: [{id: 1, amount: 2.5}], schema: {id: int64, amount: float64}}
transforms:
  priced:
    type: script
    from: orders
    script: |
      function invoke(row: Row): Result {
        return { id: row.id, gross: row.amount };
      }
    schema: {id: int64, gross: float64}
sinks:
  out: {type: blackhole, from: priced}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    return tmp_path


def give_compiler(folder: Path, output: str) -> None:
    """A compiler that reports what it is told to, and keeps what it was given."""
    program = folder / "node_modules" / ".bin" / "tsc"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n/bin/cat row.d.ts script.ts > {folder}/given\necho '{output}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_rows_are_printed(folder: Path) -> None:
    done = CliRunner().invoke(application("types"), ["types", "p.yaml", "priced"])
    assert done.exit_code == 0, done.output
    assert "interface Row {\n  id: bigint | null;\n  amount: number | null;\n}" in done.output
    assert "interface Result {\n  id?: bigint | number | null;\n  gross?: number | null;\n}" in done.output


def test_every_type_has_a_declaration() -> None:
    names = ["bool", "int8", "int64", "float32", "string", "binary", "decimal(10,2)", "date", "timestamp", "timestamp_ntz"]
    names += ["list<int64>", "map<string, date>", "struct<a: int32, b-c: string>"]
    schema = pa.schema([pa.field(f"c {at}", types.parse(name)) for at, name in enumerate(names)])
    for field in schema:
        describe_type(field.type)
    text = declare_rows("n", schema, schema)
    assert len([token for token in tokens_of(text) if token.kind == "string" and token.text.startswith('"c ')]) == 2 * len(names)
    row, result = text.split("interface Result")
    assert "Map<string, string | null> | null;" in row
    assert "Map<string, string | Date | null> | Record<string, string | Date | null> | null;" in result


def test_type_errors_have_their_place(folder: Path) -> None:
    give_compiler(folder, "script.ts(2,32): error TS2322: Type null is not assignable.")
    done = CliRunner().invoke(application("check"), ["check", "--types", "p.yaml"])
    assert done.exit_code == 78
    assert "error[MS198]: `priced`: TS2322: Type null is not assignable." in done.output
    assert "p.yaml:10:38" in done.output
    given = (folder / "given").read_text()
    assert "interface Row {" in given
    assert "export const asMillstreamCallsIt: (row: Row) => Result | null | (Result | null)[] = invoke;" in given


def test_without_a_request_nobody_is_asked(folder: Path) -> None:
    give_compiler(folder, "script.ts(2,32): error TS2322: no")
    assert CliRunner().invoke(application("check"), ["check", "p.yaml"]).exit_code == 0
    assert not (folder / "given").exists()


def test_without_a_compiler_there_is_a_warning(folder: Path) -> None:
    done = CliRunner().invoke(application("check"), ["check", "--types", "p.yaml"])
    assert done.exit_code == 0
    assert "warning[MS198]" in done.output
    assert "npm install --save-dev typescript" in done.output


def test_another_node_is_refused(folder: Path) -> None:
    from millstream.errors import UsageError

    done = CliRunner().invoke(application("types"), ["types", "p.yaml", "orders"])
    assert isinstance(done.exception, UsageError)
